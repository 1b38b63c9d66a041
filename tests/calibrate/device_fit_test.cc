// The catalogue's profiles are what the recipes make of the public tables, and predict what they
// have not seen as well as is promised. Both need the tables, which are not part of the repository.
#include "calibrate/fit/device_fit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "calibrate/profile/profile_diff.h"
#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"

namespace herdsim {
namespace {

std::string data_folder() {
  const char* set = std::getenv("HERDSIM_PUBLIC_DATA");
  return set != nullptr ? set : HERDSIM_SOURCE_DIR "/../shared/data";
}

#define SKIP_WITHOUT_TABLES()                                                                \
  if (!std::filesystem::exists(data_folder() + "/aiconfigurator")) {                         \
    GTEST_SKIP() << "no public tables in " << data_folder() << " (set HERDSIM_PUBLIC_DATA)"; \
  }

TEST(DeviceFit, the_committed_profiles_are_what_the_tables_give) {
  SKIP_WITHOUT_TABLES();
  for (const std::string& name : fitted_devices()) {
    const DeviceProfile made = fit_device(name, data_folder(), false).profile;
    for (const ProfileDifference& d : diff_profiles(load_profile(name), made)) {
      EXPECT_NEAR(d.farthest_ratio, 1, 2e-3) << name << ": " << d.field << ": " << d.detail;
      EXPECT_FALSE(d.detail.starts_with("only")) << name << ": " << d.field;
    }
  }
}

TEST(DeviceFit, the_h100_predicts_shapes_it_has_not_seen_within_the_goals) {
  SKIP_WITHOUT_TABLES();
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "ten fits of 71,000 rows take minutes under the sanitizers";
#endif
  int goals = 0;
  for (const ErrorSummary& e : fit_device("h100-sxm5-80gb", data_folder(), true).errors) {
    goals += e.goal_median > 0 ? 1 : 0;
    EXPECT_TRUE(e.meets_goal()) << e.group << ": median " << e.median << ", p90 " << e.p90;
  }
  EXPECT_GE(goals, 7);
}

TEST(DeviceFit, every_profile_of_the_catalogue_has_a_recipe) {
  std::vector<std::string> made = fitted_devices();
  std::sort(made.begin(), made.end());
  EXPECT_EQ(made, profile_names());
}

TEST(DeviceFit, an_unknown_device_and_a_missing_table_are_faults) {
  EXPECT_THROW(fit_device("h101", "/nowhere", false), SpecError);
  EXPECT_THROW(fit_device("h100-sxm5-80gb", "/nowhere", false), SpecError);
}

}  // namespace
}  // namespace herdsim

#include "sim/job/reliability_targets.h"

#include <gtest/gtest.h>

#include <set>

namespace herdsim {
namespace {

TEST(ReliabilityTargets, every_published_figure_is_met_within_its_bounds) {
  std::set<std::string_view> ids;
  for (const ReliabilityTarget& target : reliability_targets(2)) {
    EXPECT_TRUE(ids.insert(target.id).second) << target.id;
    EXPECT_TRUE(target.holds()) << target.id << ": " << target.predicted << " is outside "
                                << target.low << " to " << target.high << ", published "
                                << target.published;
    EXPECT_FALSE(target.source.empty()) << target.id;
  }
  EXPECT_GE(ids.size(), 55u);
}

}  // namespace
}  // namespace herdsim

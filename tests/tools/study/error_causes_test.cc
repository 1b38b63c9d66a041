#include "tools/study/error_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

using testing::HasSubstr;

Scenario small_scenario(const std::string& set) {
  std::vector<std::string> sets = {"gpus=16",
                                   "model.layers=8",
                                   "parallel.tp=4",
                                   "parallel.pp=2",
                                   "parallel.dp=2",
                                   "parallel.virtual_stages=2",
                                   "training.global_batch=8",
                                   "recovery.spares=0",
                                   "software={base: \"megatron-te\"}"};
  if (!set.empty()) sets.push_back(set);
  return load_scenario("llama3-405b-16384", sets);
}

double step_of(const std::string& set) {
  return simulate_step(small_scenario(set), {}).result.step_time.seconds();
}

ErrorCauses causes_of(double published) {
  return error_causes({.name = "a run",
                       .description = "",
                       .published_step_time_s = published,
                       .variant = small_scenario,
                       .inputs = uncertain_inputs(small_scenario("").effective_text),
                       .assumed = {}},
                      2);
}

const ErrorCause& cause_of(const ErrorCauses& causes, std::string_view path) {
  for (const ErrorCause& cause : causes.causes) {
    if (cause.bar.input.path == path) return cause;
  }
  ADD_FAILURE() << "no input " << path;
  return causes.causes.front();
}

// A "published" time made by moving one input: it is found again, and what is found is right.
TEST(ErrorCauses, find_the_value_that_makes_the_published_time) {
  const double published = step_of("software.host_milliseconds_per_step=33");
  const ErrorCauses causes = causes_of(published);
  EXPECT_LT(causes.error(), 0);
  const ErrorCause& host = cause_of(causes, "software.host_milliseconds_per_step");
  ASSERT_TRUE(host.published_at.has_value());
  EXPECT_NEAR(*host.published_at, 33, 0.2);
  EXPECT_EQ(host.towards, "40");
  size_t explained = 0;
  for (const ErrorCause& cause : causes.causes) {
    if (!cause.published_at) continue;
    ++explained;
    const std::string set = cause.bar.input.path + "=" + std::to_string(*cause.published_at);
    EXPECT_NEAR(step_of(set) / published, 1, 1e-3) << set;
    const double value = std::stod(cause.bar.input.value), end = std::stod(cause.towards);
    EXPECT_LE(std::min(value, end), *cause.published_at) << cause.bar.input.path;
    EXPECT_GE(std::max(value, end), *cause.published_at) << cause.bar.input.path;
  }
  EXPECT_GE(explained, 1u);
  EXPECT_THAT(conclusion(causes), HasSubstr("alone explains the published time"));
}

TEST(ErrorCauses, are_ranked_by_how_little_has_to_move_then_by_how_much_they_close) {
  const ErrorCauses causes = causes_of(1.01 * step_of(""));
  ASSERT_GT(causes.causes.size(), 5u);
  for (size_t i = 1; i < causes.causes.size(); ++i) {
    const ErrorCause &before = causes.causes[i - 1], &after = causes.causes[i];
    EXPECT_GE(before.holds_published(), after.holds_published()) << after.bar.input.path;
    if (!before.holds_published()) {
      EXPECT_GE(before.closes, after.closes) << after.bar.input.path;
    }
    EXPECT_EQ(after.holds_published(), after.closes >= 1) << after.bar.input.path;
  }
}

TEST(ErrorCauses, say_so_where_no_range_reaches) {
  for (const double factor : {0.1, 10.0}) {
    const ErrorCauses causes = causes_of(factor * step_of(""));
    for (const ErrorCause& cause : causes.causes) {
      EXPECT_FALSE(cause.holds_published()) << cause.bar.input.path;
      EXPECT_FALSE(cause.published_at) << cause.bar.input.path;
    }
    EXPECT_THAT(conclusion(causes), HasSubstr("No single input explains"));
    EXPECT_THAT(conclusion(causes), HasSubstr("nor do all together"));
    EXPECT_THAT(error_causes_table(causes), HasSubstr(factor < 1 ? "% too long" : "% too short"));
  }
}

}  // namespace
}  // namespace herdsim

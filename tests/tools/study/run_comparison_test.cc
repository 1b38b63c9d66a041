#include "tools/study/run_comparison.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tools/study/small_scenario.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/scenario_campaign.h"

namespace herdsim {
namespace {

RunResult run_of(std::vector<std::string> sets, int64_t replicas) {
  for (const std::string& set : small_sets()) sets.push_back(set);
  sets.push_back("reliability.base=llama3-54-days");
  const Scenario scenario = load_scenario(kSmallScenario, sets);
  const StepResult step = simulate_step(scenario, {}).result;
  return run_scenario(scenario, step, {.days = 60, .tokens = 0, .replicas = replicas}, {});
}

TEST(Confidence, an_interval_holds_the_mean_as_often_as_it_says) {
  // Two values a and b: half-width t(0.975, 1) |a - b| / 2, t = 12.706.
  const Interval two = mean_interval(std::array{1.0, 3.0});
  EXPECT_NEAR(two.mean, 2, 1e-12);
  EXPECT_NEAR(two.half_width, 12.7062, 1e-3);
  EXPECT_TRUE(std::isinf(mean_interval(std::array{5.0}).half_width));
  EXPECT_FALSE(mean_interval(std::array{5.0}).excludes_zero());
  EXPECT_TRUE(mean_interval(std::array{5.0, 5.1, 4.9}).excludes_zero());
}

TEST(RunComparison, a_run_beside_itself_differs_in_nothing) {
  const RunResult run = run_of({"reliability.rate_scale=20"}, 3);
  const RunComparison c = compare_runs(run, run);
  for (const auto* list : {&c.figures, &c.terms}) {
    for (const RunDifference& d : *list) {
      EXPECT_EQ(d.difference.mean, 0) << d.term;
      EXPECT_EQ(d.difference.half_width, 0) << d.term;
    }
  }
}

TEST(RunComparison, terms_of_the_account_sum_to_nothing_and_pairing_narrows) {
  const RunResult a = run_of({"reliability.rate_scale=2000", "checkpoint.interval_s=300"}, 8);
  const RunResult b = run_of({"reliability.rate_scale=2000", "checkpoint.interval_s=3600"}, 8);
  const RunComparison c = compare_runs(a, b);
  double sum = 0;
  for (const RunDifference& d : c.terms) sum += d.difference.mean;
  EXPECT_NEAR(sum, 0, 1e-9);
  EXPECT_EQ(c.figures[2].difference.mean, 0) << "the same failures";
  // An hour between checkpoints loses more than five minutes.
  EXPECT_LT(c.figures[0].difference.mean, 0);
  EXPECT_TRUE(c.figures[0].difference.excludes_zero());
  std::vector<double> alone;
  for (const ReplicaResult& replica : b.replicas)
    alone.push_back(replica.effective_training_time());
  EXPECT_LT(c.figures[0].difference.half_width, mean_interval(alone).half_width);
}

TEST(RunComparison, prints_two_as_differences_and_more_as_lines) {
  const RunResult a = run_of({}, 2);
  const std::vector<RunResult> two = {a, a}, three = {a, a, a};
  EXPECT_THAT(runs_comparison_table(two), ::testing::HasSubstr("B - A"));
  EXPECT_THAT(runs_comparison_table(three), ::testing::Not(::testing::HasSubstr("B - A")));
  const auto json = nlohmann::json::parse(runs_comparison_json(two));
  EXPECT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["account_differences"].size(), kRunTerms);
}

}  // namespace
}  // namespace herdsim

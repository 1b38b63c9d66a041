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

TEST(RunComparison, a_slower_step_and_failures_sum_to_what_a_token_takes_longer) {
  const RunResult a = run_of({"reliability.rate_scale=500"}, 4);
  const RunResult b = run_of({"reliability.rate_scale=2000", "software.clock_factor=0.8"}, 4);
  const RunComparison c = compare_runs(a, b);
  ASSERT_EQ(c.days_a_trillion.size(), kRunTerms + 1);
  const RunDifference& all = c.days_a_trillion.back();
  EXPECT_EQ(all.term, "all");
  double sum = 0, of_a = 0;
  for (size_t i = 0; i + 1 < c.days_a_trillion.size(); ++i) {
    const RunDifference& d = c.days_a_trillion[i];
    sum += d.difference.mean;
    of_a += d.a;
    if (d.term == "training") {
      const double step = 1e12 / static_cast<double>(a.tokens_per_step) / 86'400;
      EXPECT_NEAR(d.a, a.nominal_step.seconds() * step, 1e-6 * d.a) << "a step is a step";
      EXPECT_NEAR(d.b, b.nominal_step.seconds() * step, 1e-6 * d.b);
      EXPECT_GT(d.difference.mean, 0);
    }
  }
  EXPECT_NEAR(sum, all.difference.mean, 1e-9 * all.b);
  EXPECT_NEAR(of_a, all.a, 1e-9 * all.a);
  EXPECT_GT(all.difference.mean, 0);
}

TEST(RunComparison, prints_the_differences_of_each_from_the_first) {
  const RunResult a = run_of({}, 2);
  const std::vector<RunResult> two = {a, a}, three = {a, a, a};
  const std::string text = runs_comparison_table(three);
  EXPECT_THAT(runs_comparison_table(two), ::testing::HasSubstr("B - A"));
  EXPECT_THAT(text, ::testing::HasSubstr("B - A"));
  EXPECT_THAT(text, ::testing::HasSubstr("C - A"));
  const auto json = nlohmann::json::parse(runs_comparison_json(two));
  EXPECT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["account_differences"].size(), kRunTerms);
  const auto more = nlohmann::json::parse(runs_comparison_json(three));
  ASSERT_EQ(more["from_the_first"].size(), 2u);
  EXPECT_EQ(more["from_the_first"][1]["account_differences"].size(), kRunTerms);
}

}  // namespace
}  // namespace herdsim

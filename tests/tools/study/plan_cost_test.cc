#include "tools/study/plan_cost.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/models/queueing.h"
#include "tests/tools/study/small_scenario.h"
#include "tools/scenario/load_scenario.h"
#include "tools/study/budget_sheet.h"
#include "tools/study/plan_report.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

Scenario small_base_with_failures() {
  std::vector<std::string> sets = small_sets();
  sets.push_back("reliability.base=llama3-54-days");
  sets.push_back("parallel.sequence_parallel=");  // as the stack has it
  return load_scenario(kSmallScenario, sets);
}

RankedPlan best_plan(const Scenario& base) {
  PlanPins pins;
  pins.micro_batch = 2;
  pins.recompute = Recompute::kNone;
  return search_plans(base, pins, {.keep = 1}).best.at(0);
}

PlanCost cost(const Scenario& base, const RankedPlan& plan, const CostQuestion& question) {
  return cost_of(scenario_of(base, plan.candidate), plan.step, question);
}

TEST(PlanCost, scales_with_tokens_and_price) {
  const Scenario base = small_base_with_failures();
  const RankedPlan best = best_plan(base);
  const PlanCost one = cost(base, best, {.tokens = 1e12, .prices = {.usd_per_gpu_hour = 2}});
  const PlanCost other = cost(base, best, {.tokens = 2e12, .prices = {.usd_per_gpu_hour = 6}});
  EXPECT_NEAR(other.days, 2 * one.days, 1e-9 * other.days);
  EXPECT_NEAR(other.dollars, 6 * one.dollars, 1e-9 * other.dollars);
  EXPECT_NEAR(one.dollars, 2 * one.gpu_hours, 1e-9 * one.dollars);
  EXPECT_GT(one.effective_training_time, 0.5);
  EXPECT_LE(one.effective_training_time, 1);
  EXPECT_LE(one.days_by_luck_low, one.days);
  EXPECT_GE(one.days_by_luck_high, one.days);
  const double ideal_days = 1e12 / static_cast<double>(best.step.tokens_per_step) *
                            best.step.step_time.seconds() / 86'400;
  EXPECT_NEAR(one.days * one.effective_training_time / ideal_days, 1, 0.01);
}

TEST(PlanCost, what_is_bought_is_written_off_and_powered) {
  const Prices rented{.usd_per_gpu_hour = 2};
  const Prices bought{.capital_usd_per_gpu = 40'000, .depreciation_years = 4, .usd_per_kwh = 0.1};
  // A GPU for four years costs its price; its electricity on top.
  EXPECT_NEAR(dollars_for(bought, 1, 4 * 365.25, 0), 40'000, 1e-6);
  EXPECT_NEAR(dollars_for(bought, 1, 4 * 365.25, 35), 40'000 + 3'500, 1e-6);
  EXPECT_NEAR(dollars_for(rented, 100, 10, 35), 100 * 240 * 2, 1e-6);
}

TEST(PlanCost, spares_cover_hosts_away_with_the_asked_probability) {
  const Scenario base = load_scenario("llama3-405b-16384");
  StepResult step;
  step.step_time = seconds_rounded_up(6.4);
  step.tokens_per_step = base.training.tokens();
  step.gpus = base.gpus;
  const PlanCost cost = cost_of(base, step, {.tokens = 1e12, .availability = 0.99, .threads = 2});
  EXPECT_NEAR(cost.unplanned_failures_a_day, 419.0 / 54, 0.2);
  EXPECT_GT(cost.hosts_away, 0.5);
  EXPECT_LE(poisson_tail(cost.hosts_away, cost.spares), 0.01);
  EXPECT_GT(poisson_tail(cost.hosts_away, cost.spares - 1), 0.01);
  EXPECT_EQ(cost.interval_s, 300);
  EXPECT_GT(cost.daly_interval_s, 0);
  EXPECT_NEAR(cost.facility_megawatts, 16'384 * 700e-6 * kFacilityPowerFactor, 2.5);
}

TEST(PlanCost, assumptions_widen_the_days_both_ways) {
  std::vector<std::string> sets = small_sets();
  sets.push_back("software={base: \"meta-llama3\"}");
  const ScenarioVariant variant = [&](const std::string& set) {
    std::vector<std::string> all = sets;
    if (!set.empty()) all.push_back(set);
    return load_scenario(kSmallScenario, all);
  };
  const Scenario scenario = variant("");
  StepResult step = best_plan(small_base_with_failures()).step;
  const PlanCost cost = cost_of(scenario, step, {.tokens = 1e12, .variant = variant, .threads = 2});
  EXPECT_LT(cost.days_by_assumptions_low, cost.days);
  EXPECT_GT(cost.days_by_assumptions_high, cost.days);
  // Its bars: the most first, none beyond all of them together.
  ASSERT_GT(cost.assumptions.size(), 2u);
  const auto reach = [&](const DaysBar& bar) {
    return std::max(std::abs(cost.days / bar.days_low - 1),
                    std::abs(cost.days / bar.days_high - 1));
  };
  for (size_t i = 0; i < cost.assumptions.size(); ++i) {
    const DaysBar& bar = cost.assumptions[i];
    EXPECT_GT(reach(bar), 0) << bar.input.path;
    if (i > 0) {
      EXPECT_LE(reach(bar), reach(cost.assumptions[i - 1]) + 1e-12) << bar.input.path;
    }
    for (const double days : {bar.days_low, bar.days_high}) {
      EXPECT_GE(days, cost.days_by_assumptions_low * (1 - 1e-9)) << bar.input.path;
      EXPECT_LE(days, cost.days_by_assumptions_high * (1 + 1e-9)) << bar.input.path;
    }
  }
}

// A job without spares waits for repairs; one with as many as the availability takes hardly does.
TEST(PlanCost, the_pace_is_with_the_spares_that_are_advised_unless_told_otherwise) {
  const Scenario base = load_scenario("llama3-405b-16384", {"recovery.spares=0"});
  StepResult step;
  step.step_time = seconds_rounded_up(6.4);
  step.tokens_per_step = base.training.tokens();
  step.gpus = base.gpus;
  const PlanCost advised = cost_of(base, step, {.tokens = 1e12, .threads = 2});
  const PlanCost none = cost_of(base, step, {.tokens = 1e12, .keep_spares = true, .threads = 2});
  EXPECT_EQ(advised.simulated_spares, advised.spares);
  EXPECT_EQ(none.simulated_spares, 0);
  EXPECT_EQ(none.spares, advised.spares);
  EXPECT_GT(none.days, 1.2 * advised.days);
}

TEST(PlanReport, curves_start_at_one_and_goals_say_by_how_much) {
  PlanReport report{.model = "m", .cluster = "c"};
  for (const int64_t gpus : {8, 16, 32}) {
    PlanAnswer answer;
    answer.search.gpus = gpus;
    answer.global_batch = 64;
    RankedPlan plan = best_plan(small_base_with_failures());
    plan.step.gpus = gpus;
    plan.step.step_time =
        seconds_rounded_up(gpus == 32 ? 4.0 : 8.0 * 8 / static_cast<double>(gpus));
    answer.search.best.push_back(plan);
    report.answers.push_back(answer);
  }
  report.answers[0].missed.push_back({"deadline_days", 60, 54, "60.0 days, 6.0 over"});
  const std::vector<ScalingPoint> curve = scaling_curve(report);
  ASSERT_EQ(curve.size(), 3u);
  EXPECT_NEAR(curve[0].efficiency, 1, 1e-12);
  EXPECT_NEAR(curve[1].speed_up, 2, 1e-9);
  EXPECT_NEAR(curve[2].efficiency, 0.5, 1e-9);
  EXPECT_THAT(plan_table(report), HasSubstr("strong scaling"));
  EXPECT_THAT(plan_table(report), HasSubstr("not met: 60.0 days"));
  const auto json = nlohmann::json::parse(plan_json(report));
  EXPECT_EQ(json["answers"][0]["not_met"][0]["goal"], "deadline_days");
  EXPECT_EQ(json["scaling"]["points"].size(), 3u);
}

DeviceProfile h100() { return load_scenario("llama3-405b-16384").profile; }

TEST(BudgetSheet, solves_for_what_is_missing) {
  // A public table: 697 tokens/s a GPU, 10T tokens on 1,024 GPUs, "162 days".
  const auto days =
      budget_lines({.tokens = 1e13, .tokens_per_second_per_gpu = 697, .gpus = {1'024}}, h100());
  ASSERT_EQ(days.size(), 1u);
  EXPECT_NEAR(days[0].days, 162.2, 0.05);
  EXPECT_FALSE(days[0].mfu.has_value());
  // A public sheet: 3e24 FLOPs in 90 days at 55.2 % of 2,000 TFLOP/s. Rounded up.
  const auto sheet = budget_lines(
      {.flops = 3e24, .mfu = 0.552, .peak_tflops = 2'000, .days = 90, .precision = DataType::kFp8},
      h100());
  ASSERT_EQ(sheet.size(), 2u);
  EXPECT_EQ(sheet[0].gpus, 350);
  EXPECT_EQ(sheet[1].gpus, 707);
  ASSERT_FALSE(sheet[0].notes.empty());
  EXPECT_THAT(sheet[0].notes[0], HasSubstr("no published fp8 run reaches this"));
  // 54 days are a window of a run, not the run.
  const auto rate = budget_lines({.flops = 3.8e25, .gpus = {16'384}, .days = 54}, h100());
  EXPECT_NEAR(*rate[0].mfu, 0.503, 1e-3);
  const auto pure =
      budget_lines({.flops = 3.79e25, .tflops_per_gpu = 400, .gpus = {16'384}, .days = 54}, h100());
  EXPECT_NEAR(pure[0].days, 66.9, 0.05);
  EXPECT_THAT(pure[0].notes.back(), HasSubstr("12.9 days more"));
}

TEST(BudgetSheet, gpu_hours_and_work_give_the_rate) {
  // The 70B took 6.4 million GPU-hours (model card): 6.35e24 FLOPs in them.
  const auto lines =
      budget_lines({.tokens = 15e12, .flops_per_token = 6 * 70.55e9, .gpu_hours = 6.4e6}, h100());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NEAR(*lines[0].tflops_per_gpu, 6.35e24 / 6.4e6 / 3600 * 1e-12, 0.1);
  EXPECT_NEAR(lines[0].gpu_hours, 6.4e6, 1);
  EXPECT_EQ(lines[0].asked, "rate");
}

TEST(BudgetSheet, a_peak_of_sparse_matrices_is_named_and_the_dense_one_stands_beside_it) {
  const auto lines =
      budget_lines({.flops = 3e24, .mfu = 0.552, .peak_tflops = 2'000, .days = 90}, h100());
  EXPECT_EQ(lines[0].gpus, 350);
  ASSERT_FALSE(lines[0].notes.empty());
  EXPECT_THAT(lines[0].notes[0], HasSubstr("989.4"));
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const BudgetLine& line) {
    return line.gpus == 707 && line.basis.starts_with("bf16 dense");
  }));
}

// "400 TFLOPS, is that 20 % or 40 %?" (Megatron-LM issue 1276)
TEST(BudgetSheet, a_rate_alone_is_a_share_of_each_dense_peak) {
  const BudgetQuestion question{.tflops_per_gpu = 400};
  ASSERT_TRUE(question.is_of_rate_alone());
  const std::vector<RateLine> lines = rate_lines(question, h100());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NEAR(lines[0].mfu, 400 / 989.4, 1e-4);
  EXPECT_NEAR(lines[1].mfu, 400 / 1978.9, 1e-4);
  EXPECT_THAT(rate_table(lines), HasSubstr("40.4  bf16 dense"));
}

TEST(BudgetSheet, tokens_a_second_are_flops_in_each_way_to_count) {
  BudgetQuestion question{.tokens_per_second_per_gpu = 160};
  count_flops(load_scenario("llama3-405b-131072ctx"), question);
  ASSERT_TRUE(question.is_of_rate_alone());
  // Published: 4.06e12 FLOPs a token causal, 5.68e12 over the full square.
  EXPECT_NEAR(question.flops_per_token_causal, 4.06e12, 0.02e12);
  EXPECT_NEAR(question.flops_per_token_full, 5.68e12, 0.03e12);
  const std::vector<RateLine> lines = rate_lines(question, h100());
  ASSERT_EQ(lines.size(), 6u);
  for (const RateLine& line : lines) {
    EXPECT_NEAR(line.tokens_per_second_per_gpu, 160, 1e-9) << line.counted;
    EXPECT_EQ(line.mfu > 1, !line.note.empty()) << line.counted;
  }
  EXPECT_NEAR(lines[2].tflops_per_gpu, 160 * question.flops_per_token_causal * 1e-12, 1e-6);
}

TEST(BudgetSheet, a_token_of_a_mixture_of_experts_takes_the_parameters_it_visits) {
  // 671e9 parameters, of which a token visits 37e9 (arXiv:2412.19437).
  BudgetQuestion question;
  count_flops(load_scenario("deepseek-v3-2048"), question);
  EXPECT_NEAR(question.flops_per_token, 6 * 37.5e9, 6 * 1.5e9);
}

TEST(BudgetSheet, refuses_what_cannot_be_and_what_is_not_said) {
  const BudgetQuestion impossible[] = {
      {.flops = 1e24, .mfu = 1.04, .gpus = {8}},
      {.flops = 1e24, .tflops_per_gpu = 1'200, .gpus = {8}},
      {.flops = 1e24, .gpus = {8}},
      {.flops = 1e24, .mfu = 0.4},
      {.mfu = 0.4, .gpus = {8}},
      {.flops = 1e24, .tokens = 1e12, .mfu = 0.4, .gpus = {8}},
      {.flops = 1e24, .mfu = 0.4, .tflops_per_gpu = 400, .gpus = {8}},
      {.flops = 1e24, .tokens_per_second_per_gpu = 500, .gpus = {8}},
      {.flops = 1e24, .mfu = 0.4, .gpu_hours = 1e6},
      {.flops = 1e24, .gpus = {8}, .gpu_hours = 1e6},
      {.gpu_hours = 1e6},
  };
  const DeviceProfile profile = h100();
  for (const BudgetQuestion& question : impossible) {
    EXPECT_THROW(budget_lines(question, profile), SpecError) << &question - impossible;
  }
}

}  // namespace
}  // namespace herdsim

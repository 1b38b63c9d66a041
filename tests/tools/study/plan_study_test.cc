#include "tools/study/plan_study.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "tools/study/closed_forms.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

// A search of a few plans.
PlanQuestion small_question() {
  return {.model = "llama3-8b",
          .cluster = "dgx-superpod-16k",
          .sets = {"parallel.tp=1", "parallel.cp=1", "parallel.pp=1", "parallel.micro_batch=1",
                   "training.recompute=NONE", "training.global_batch=512"},
          .keep = 1,
          .threads = 2};
}

TEST(PlanStudy, without_counts_finds_the_fewest_gpus_that_hold_the_model) {
  const PlanQuestion question = small_question();
  const PlanReport report = plan_study(question);
  ASSERT_EQ(report.answers.size(), 1u);
  const PlanAnswer& fewest = report.answers[0];
  ASSERT_FALSE(fewest.search.best.empty());
  EXPECT_THAT(fewest.asked, HasSubstr("hold the model"));
  // Half as many hold it in no way.
  PlanQuestion half = question;
  half.gpus = {fewest.search.gpus / 2};
  const PlanReport less = plan_study(half);
  EXPECT_TRUE(less.answers[0].search.best.empty());
  ASSERT_EQ(less.answers[0].missed.size(), 1u);
  EXPECT_EQ(less.answers[0].missed[0].goal, "plan");
}

TEST(PlanStudy, without_counts_and_with_a_deadline_finds_the_fewest_in_time) {
  PlanQuestion question = small_question();
  question.tokens = 1e12;
  question.deadline_days = 30;
  const PlanReport report = plan_study(question);
  ASSERT_EQ(report.answers.size(), 2u);
  const PlanAnswer& in_time = report.answers[1];
  ASSERT_TRUE(in_time.cost);
  EXPECT_LE(in_time.cost->days, 30);
  EXPECT_TRUE(in_time.missed.empty());
  EXPECT_THAT(in_time.asked, HasSubstr("in 30 days"));
  // Counts lie an eighth apart, or one host: the one below is late.
  PlanQuestion below = question;
  below.gpus = {in_time.search.gpus - std::max<int64_t>(8, in_time.search.gpus / 8)};
  const PlanReport fewer = plan_study(below);
  EXPECT_TRUE(fewer.answers[0].search.best.empty() || !fewer.answers[0].missed.empty());
  EXPECT_THAT(plan_table(report), HasSubstr("what the tokens take"));
}

TEST(PlanStudy, a_goal_that_no_count_meets_is_answered_by_what_comes_closest) {
  PlanQuestion question = small_question();
  question.tokens = 1e15;
  question.deadline_days = 1;
  const PlanReport report = plan_study(question);
  const PlanAnswer& closest = report.answers.back();
  EXPECT_FALSE(closest.missed.empty());
  EXPECT_THAT(plan_table(report), HasSubstr("not met: "));
}

// The textbook's flow, each step of it beside the best plan that it speaks of.
TEST(PlanStudy, the_simulation_stands_beside_every_step_of_the_whiteboards_decision) {
  PlanQuestion question = small_question();
  question.gpus = {16};
  question.formulas = true;
  const PlanReport report = plan_study(question);
  ASSERT_TRUE(report.answers[0].formulas);
  const FormulaSheet& sheet = *report.answers[0].formulas;
  ASSERT_FALSE(sheet.decision.empty());
  for (const Decision& decision : sheet.decision) {
    EXPECT_FALSE(decision.simulated.empty()) << decision.text;
  }
  EXPECT_THAT(sheet.decision[0].simulated, HasSubstr("none fits"));
  EXPECT_THAT(formula_table(sheet), HasSubstr("simulated: "));
  const auto json = nlohmann::json::parse(plan_json(report));
  EXPECT_EQ(json["answers"][0]["formulas"]["decision"].size(), sheet.decision.size());
}

// What `plan --formulas` prints of the worked 70B example, 4e6 tokens on 8,960 GPUs as FSDP 2,048
// by TP 4 (closed_forms_test.cc has every number of it).
TEST(PlanStudy, the_whiteboard_of_the_70b_example_has_its_numbers) {
  PlanPins pins;
  Scenario base = plan_base({.model = "llama3-70b",
                             .cluster = "dgx-superpod-16k",
                             .sets = {"training.sequence_length=8000", "training.global_batch=500",
                                      "parallel.tp=4", "parallel.dp=2048"}},
                            pins);
  base.gpus = 8'960;
  base.profile.peak[static_cast<size_t>(DataType::kBf16)] = teraflops(989);
  const std::string text = formula_table(whiteboard_sheet(base, pins));
  for (const char* printed : {
           "1,129 GB",     // state; the rounded parts sum to 1,128
           "weights 141",  // and gradients as much
           "moments 282 and 282",
           "master 51.7 MB, gradients 17.2, moments 68.9",  // printed 51, 17 and 69
           "1.28 GB",                                       // activations; printed 1.3
           "2,198",                                         // alpha of NVLink, one direction
           "gives 1,099",                                   // and both
           "19,780",                                        // alpha of the NIC; tokens a node
           "26.1 if NVLink",                                // ways of TP
           "need F > 316,480",                              // TP 16 over the NIC
           "21.1 on",                                       // FSDP + TP were both on NVLink
           "758 with the NIC",
           "1,581 were both",  // ways of FSDP; printed 1,618
           "is 8,192 GPUs",    // printed 8,960
       }) {
    EXPECT_THAT(text, HasSubstr(printed));
  }
}

TEST(PlanStudy, growing_batches_and_counts_beyond_the_machine_are_input_errors) {
  PlanQuestion question = small_question();
  question.gpus = {1 << 20};
  EXPECT_THROW(plan_study(question), SpecError);
  question.gpus = {1'000, 1'001};
  question.weak_scaling = true;
  EXPECT_THROW(plan_study(question), SpecError);
  question = small_question();
  question.memory_gigabytes = 1e6;
  EXPECT_THROW(plan_study(question), SpecError);
}

}  // namespace
}  // namespace herdsim

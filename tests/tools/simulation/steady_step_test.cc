// Steps of many micro-batches found by two of few, against the whole step.
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/executor/job_cases.h"
#include "tests/tools/simulation/result_text.h"
#include "tools/simulation/shorter_steps.h"
#include "tools/simulation/simulate_step.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

// However the step is found, the answer is the same; `folds` says whether two shorter ones found it.
void expect_same_step(const Scenario& scenario, const std::string& name, bool* folds) {
  const StepResult whole = simulate_step(scenario, {}).result;
  const StepResult found = simulate_step(scenario, {.result_alone = true}).result;
  EXPECT_EQ(text_of(found), text_of(whole)) << name;
  *folds = found.events != whole.events;
}

TEST(SteadyStep, is_the_whole_step_to_the_nanosecond) {
  for (const JobCase& c : job_cases()) {
    Scenario scenario = c.scenario();
    scenario.training.global_batch *= 60;
    bool folds = false;
    expect_same_step(scenario, c.name, &folds);
    EXPECT_FALSE(folds && !scenario.cluster.degraded.empty()) << c.name;
  }
}

// Every order of passes with every sharding, on a machine that is as it should be. Gradients that
// are reduced after every pass and take longer than the pass fall behind for as long as the step
// goes on, so those of ZeRO-2 repeat nothing here.
TEST(SteadyStep, is_found_by_shorter_ones_where_passes_alternate) {
  const auto base =
      load_scenario("llama3-8b-1024", {"gpus=16", "parallel.tp=2", "parallel.pp=4", "parallel.dp=2",
                                       "model.layers=8", "training.sequence_length=8192",
                                       "training.global_batch=1600", "recovery.spares=0"});
  for (const ScheduleRow& row : schedules()) {
    for (const Sharding shard : {Sharding::kNone, Sharding::kZero1, Sharding::kZero2}) {
      Scenario scenario = base;
      scenario.training.schedule = row.name;
      scenario.plan.shard = shard;
      scenario.plan.virtual_stages = row.uses_virtual_stages ? 2 : 1;
      bool folds = false;
      expect_same_step(scenario, std::string(row.name), &folds);
      const bool alternates = row.name != "gpipe" && row.name != "breadth-first";
      if (shard != Sharding::kZero2) {
        EXPECT_EQ(folds, alternates) << row.name << " " << static_cast<int>(shard);
      }
    }
  }
}

TEST(SteadyStep, tries_shapes_that_add_up_to_the_whole_one) {
  for (const ScheduleRow& row : schedules()) {
    for (const int64_t stages : {1, 2, 4, 8}) {
      for (const int64_t micro_batches : {1, 8, 64, 512, 4096}) {
        for (const int64_t virtual_stages : {1, 2, 4}) {
          const ScheduleShape shape{
              .stages = stages, .micro_batches = micro_batches, .virtual_stages = virtual_stages};
          Faults of_whole;
          row.validate(shape, of_whole);
          if (!of_whole.empty()) continue;
          for (const ShorterSteps& shorter : shorter_steps(row, shape)) {
            EXPECT_EQ(shorter.micro_batches + shorter.periods * shorter.period, micro_batches);
            EXPECT_GT(shorter.periods, 0);
            for (const int64_t n :
                 {shorter.micro_batches, shorter.micro_batches + shorter.period}) {
              ScheduleShape less = shape;
              less.micro_batches = n;
              Faults of_less;
              row.validate(less, of_less);
              EXPECT_TRUE(of_less.empty()) << row.name << " " << n;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace herdsim

// The schedule as it ran against the trace that it is made of and the memory model beside it.
#include "tools/simulation/schedule_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/simulate_step.h"
#include "tools/simulation/step_trace.h"

namespace herdsim {
namespace {

StepSimulation sampled(const Scenario& scenario) {
  return simulate_step(scenario, {.traced_ranks = sampled_ranks(scenario)});
}

TEST(SchedulePasses, hold_the_compute_of_one_rank_of_every_stage) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    const StepSimulation step = sampled(scenario);
    std::map<RankId, int64_t> of_spans, of_passes;
    for (const Span& span : step.trace.spans) {
      if (span.stream == Stream::kCompute) {
        of_spans[span.rank] += (span.end - span.begin).nanoseconds();
      }
    }
    for (const SchedulePass& pass : step.passes) {
      EXPECT_EQ(coordinates_of(pass.rank, scenario.plan).pp, pass.stage) << c.name;
      of_passes[pass.rank] += (pass.end - pass.begin).nanoseconds();
    }
    EXPECT_EQ(static_cast<int64_t>(of_passes.size()), scenario.plan.pp) << c.name;
    // A pass also spans the waits between its kernels.
    for (const auto& [rank, busy] : of_passes) EXPECT_GE(busy, of_spans[rank]) << c.name;
  }
}

TEST(SchedulePasses, follow_each_other_without_overlap) {
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = sampled(c.scenario());
    for (size_t i = 1; i < step.passes.size(); ++i) {
      const SchedulePass &a = step.passes[i - 1], &b = step.passes[i];
      EXPECT_TRUE(a.stage < b.stage || a.end <= b.begin) << c.name;
    }
  }
}

TEST(SchedulePasses, of_micro_batches_all_have_memory_and_reach_the_stages_peak) {
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = sampled(c.scenario());
    std::map<int64_t, Bytes> highest;
    for (const SchedulePass& pass : step.passes) {
      if (pass.micro_batch < 0) continue;
      ASSERT_TRUE(pass.memory.has_value()) << c.name << ", stage " << pass.stage;
      highest[pass.stage] = std::max(highest[pass.stage], *pass.memory);
    }
    for (const StageMemory& stage : step.result.memory) {
      EXPECT_EQ(highest[stage.stage], stage.peak) << c.name << ", stage " << stage.stage;
    }
  }
}

TEST(SchedulePasses, classes_of_ranks_hold_every_rank_and_the_whole_step) {
  for (const JobCase& c : job_cases()) {
    const StepResult result = simulate_step(c.scenario(), {}).result;
    int64_t ranks = 0;
    for (const RankClassTime& one : result.class_account) {
      ranks += one.ranks;
      int64_t sum = 0;
      for (const int64_t term : one.nanoseconds) sum += term;
      EXPECT_EQ(sum, result.step_time.nanoseconds()) << c.name;
    }
    EXPECT_EQ(ranks, result.gpus) << c.name;
  }
}

TEST(SchedulePasses, a_slow_loader_is_in_the_account_of_every_class) {
  Scenario scenario = job_cases().front().scenario();
  const Duration alone = simulate_step(scenario, {}).result.step_time;
  constexpr auto kLoader = static_cast<size_t>(TimeTerm::kLoader);
  const auto tokens = static_cast<double>(scenario.training.tokens());
  scenario.training.loader.tokens_per_second = tokens / (3 * alone.seconds());
  for (const int64_t prefetch : {0, 1}) {
    scenario.training.loader.prefetch = prefetch;
    const StepResult result = simulate_step(scenario, {}).result;
    // It hides behind the step where it may be ahead, and comes on top where it may not.
    EXPECT_NEAR(result.step_time.seconds(), (prefetch > 0 ? 3 : 4) * alone.seconds(), 1e-8);
    const Duration wait = result.step_time - alone;
    EXPECT_EQ(result.account_rank_nanoseconds[kLoader], wait.nanoseconds() * result.gpus);
    for (const RankClassTime& one : result.class_account) {
      EXPECT_EQ(one.nanoseconds[kLoader], wait.nanoseconds());
    }
  }
}

}  // namespace
}  // namespace herdsim

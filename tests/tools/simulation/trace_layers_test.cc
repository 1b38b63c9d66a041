// The layers of a trace against its spans, and the sums that `explain` prints.
#include "tools/simulation/trace_layers.h"

#include <gtest/gtest.h>

#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/step_trace.h"

namespace herdsim {
namespace {

StepSimulation simulated(const Scenario& scenario) {
  return simulate_step(scenario, {.traced_ranks = sampled_ranks(scenario), .critical_path = true});
}

TEST(TraceLayers, waits_end_when_what_they_were_for_ends_and_the_longest_come_first) {
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = simulated(c.scenario());
    const TraceOverlay overlay = trace_overlay(step);
    Duration before = Duration::infinite();
    for (const WaitArrow& wait : overlay.waits) {
      const Span &from = step.trace.spans[wait.from], &to = step.trace.spans[wait.to];
      EXPECT_EQ(from.rank, to.rank) << c.name;
      EXPECT_EQ(from.end, to.begin) << c.name;
      EXPECT_EQ(to.stream, Stream::kCompute) << c.name;
      EXPECT_GT(wait.waited, Duration::zero()) << c.name;
      EXPECT_LE(wait.waited, before) << c.name;
      before = wait.waited;
    }
  }
}

TEST(TraceLayers, network_counters_carry_the_bytes_of_the_spans) {
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = simulated(c.scenario());
    double counted = 0, carried = 0;
    for (const Counter& counter : step.trace.counters) {
      if (counter.unit != "GB/s" || counter.of_cluster) continue;
      EXPECT_EQ(counter.samples.back().value, 0) << c.name;
      for (size_t i = 1; i < counter.samples.size(); ++i) {
        counted += counter.samples[i - 1].value *
                   (counter.samples[i].at - counter.samples[i - 1].at).seconds();
      }
    }
    for (const Span& span : step.trace.spans) {
      const bool leaves = span.stream == Stream::kSendForward ||
                          span.stream == Stream::kSendBackward || span.stream == Stream::kDp ||
                          span.stream == Stream::kEp;
      if (leaves && span.begin < span.end)
        carried += static_cast<double>(span.bytes.count()) * 1e-9;
    }
    EXPECT_NEAR(counted, carried, 1e-6 * carried + 1e-9) << c.name;
  }
}

// The path is a row of slices, which must not overlap and of which every name is known.
TEST(TraceLayers, the_path_is_that_of_the_step_without_its_empty_ops) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    if (!scenario.other_jobs.empty()) continue;  // answered of a job alone
    const StepSimulation step = simulated(scenario);
    const TraceOverlay overlay = trace_overlay(step);
    Instant at;
    for (const PathSpan& span : overlay.critical_path) {
      ASSERT_EQ(span.begin, at) << c.name;
      ASSERT_LT(span.begin, span.end) << c.name;
      ASSERT_LT(span.name, overlay.names.size()) << c.name;
      at = span.end;
    }
    EXPECT_EQ(at - Instant::start(), step.result.step_time) << c.name;
  }
}

TEST(TraceLayers, memory_follows_the_passes) {
  const StepSimulation step = simulated(job_cases().front().scenario());
  size_t counters = 0;
  for (const Counter& counter : step.trace.counters) {
    if (counter.name != "memory") continue;
    ++counters;
    double most = 0;
    for (const CounterSample& sample : counter.samples) most = std::max(most, sample.value);
    const auto stage = static_cast<size_t>(step.graph.program_of(counter.rank).index());
    EXPECT_NEAR(most, static_cast<double>(step.result.memory[stage].peak.count()) * 1e-9,
                0.05 * most);
  }
  EXPECT_EQ(counters, step.result.memory.size());
}

}  // namespace
}  // namespace herdsim

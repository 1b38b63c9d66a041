// Power against the time in which kernels run.
#include "tools/simulation/power_counters.h"

#include <gtest/gtest.h>

#include "sim/models/clock_power.h"
#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/simulate_step.h"
#include "tools/simulation/step_trace.h"

namespace herdsim {
namespace {

const Counter* find(const StepTrace& trace, RankId rank, std::string_view name) {
  for (const Counter& counter : trace.counters) {
    if (!counter.of_cluster && counter.rank == rank && counter.name == name) return &counter;
  }
  return nullptr;
}

// Of a counter that holds until its next sample.
double integral(const Counter& counter, Instant end) {
  double sum = 0;
  for (size_t i = 0; i < counter.samples.size(); ++i) {
    const Instant until = i + 1 < counter.samples.size() ? counter.samples[i + 1].at : end;
    sum += counter.samples[i].value * (until - counter.samples[i].at).seconds();
  }
  return sum;
}

TEST(PowerCounters, give_the_energy_of_the_time_in_which_kernels_run) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    const StepTrace trace =
        simulate_step(scenario, {.traced_ranks = sampled_ranks(scenario)}).trace;
    Instant end;
    for (const Span& span : trace.spans) end = std::max(end, span.end);
    const double seconds = (end - Instant::start()).seconds();
    const double idle = ClockPowerModel().idle_w, limit = scenario.profile.board_watts;
    double all = 0;
    for (const RankPlace& place : trace.ranks) {
      double busy = 0;
      for (const Span& span : trace.spans) {
        if (span.rank == place.rank && span.stream == Stream::kCompute) {
          busy += (span.end - span.begin).seconds();
        }
      }
      const Counter* power = find(trace, place.rank, "power");
      ASSERT_NE(power, nullptr) << c.name;
      EXPECT_NEAR(integral(*power, end), idle * seconds + (limit - idle) * busy, 0.5 * seconds)
          << c.name;
      for (const CounterSample& sample : power->samples) {
        EXPECT_GE(sample.value, idle) << c.name;
        EXPECT_LE(sample.value, limit) << c.name;
      }
      all += integral(*power, end);
    }
    const auto cluster = std::find_if(
        trace.counters.begin(), trace.counters.end(),
        [](const Counter& counter) { return counter.of_cluster && counter.unit == "MW"; });
    ASSERT_NE(cluster, trace.counters.end()) << c.name;
    const double scale =
        static_cast<double>(scenario.gpus) / static_cast<double>(trace.ranks.size()) / 1e6;
    EXPECT_NEAR(integral(*cluster, end), all * scale, scale * seconds) << c.name;
  }
}

TEST(PowerCounters, show_the_clock_of_a_slow_gpu_alone) {
  Scenario scenario = job_cases().front().scenario();
  scenario.cluster.degraded.push_back({.gpu = 0, .compute_factor = 0.8});
  const StepTrace trace = simulate_step(scenario, {.traced_ranks = sampled_ranks(scenario)}).trace;
  for (const RankPlace& place : trace.ranks) {
    const Counter* clock = find(trace, place.rank, "clock");
    ASSERT_NE(clock, nullptr);
    ASSERT_EQ(clock->samples.size(), 1U);
    EXPECT_DOUBLE_EQ(clock->samples[0].value, place.rank == RankId(0) ? 80 : 100);
  }
}

TEST(PowerCounters, average_over_windows_that_are_few) {
  EXPECT_EQ(power_window(milliseconds(10)), milliseconds(1));
  for (const Duration step : {milliseconds(251), milliseconds(6220), milliseconds(90000500)}) {
    EXPECT_GE(power_window(step) * 250, step);
    EXPECT_LT((power_window(step) - nanoseconds(1)) * 250, step);
  }
}

}  // namespace
}  // namespace herdsim

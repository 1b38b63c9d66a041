// Goals of a simulated step: Llama 3 405B at 16,384 GPUs under every schedule, and at a million.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/scenario/load_scenario.h"
#include "tools/simulation/process_memory.h"
#include "tools/simulation/simulate_step.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {
namespace {

// Of the process up to now, so the largest benchmark runs last.
double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

void simulate(benchmark::State& state, const Scenario& scenario, double goal_ms) {
  StepResult result;
  for (auto _ : state) result = simulate_step(scenario, {}).result;
  state.counters["goal_ms"] = goal_ms;
  state.counters["classes"] = static_cast<double>(result.simulated_ranks);
  state.counters["events"] = static_cast<double>(result.events);
  state.counters["step_s"] = result.step_time.seconds();
  state.counters["peak_MB"] = peak_megabytes();
}

void step_at_16384(benchmark::State& state) {
  simulate(state, load_scenario("llama3-405b-16384"), 20);
}
BENCHMARK(step_at_16384)->Unit(benchmark::kMillisecond);

void step_at_16384_with_slow_gpu(benchmark::State& state) {
  simulate(state,
           load_scenario("llama3-405b-16384", {"cluster.degraded={gpu: 777 compute_factor: 0.9}"}),
           100);
}
BENCHMARK(step_at_16384_with_slow_gpu)->Unit(benchmark::kMillisecond);

// Argument: row of the schedule table. Layers and micro-batches that every row accepts.
void step_at_16384_by_schedule(benchmark::State& state) {
  const ScheduleRow& row = schedules()[static_cast<size_t>(state.range(0))];
  state.SetLabel(std::string(row.name));
  simulate(
      state,
      load_scenario(
          "llama3-405b-16384",
          {"training.schedule=" + std::string(row.name), "training.global_batch=4096",
           row.uses_virtual_stages ? "parallel.virtual_stages=8" : "parallel.virtual_stages=1"}),
      30);
}
BENCHMARK(step_at_16384_by_schedule)->DenseRange(0, 7)->Unit(benchmark::kMillisecond);

// Goal: 1 s and 1,000 MB.
void step_at_a_million(benchmark::State& state) {
  simulate(state, load_scenario("llama3-405b-1m"), 1000);
  state.counters["goal_MB"] = 1000;
}
BENCHMARK(step_at_a_million)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace herdsim

int main(int argc, char** argv) {
  herdsim::keep_freed_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

#include <benchmark/benchmark.h>

#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

// Goal: 5 ms a scenario, so that a sweep of a thousand points spends seconds on its input.
void load_catalogue_scenario(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(load_scenario("llama3-405b-16384"));
  state.counters["goal_ms"] = 5;
}
BENCHMARK(load_catalogue_scenario)->Unit(benchmark::kMillisecond);

void load_with_options(benchmark::State& state) {
  const std::vector<std::string> sets = {"parallel.tp=4", "parallel.dp=", "seed=3"};
  for (auto _ : state) benchmark::DoNotOptimize(load_scenario("llama3-405b-16384", sets));
  state.counters["goal_ms"] = 5;
}
BENCHMARK(load_with_options)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace herdsim

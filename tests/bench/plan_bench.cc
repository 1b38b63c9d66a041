// Goals of `plan` and `sweep`: candidates bounded, plans simulated and points swept a second.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tools/scenario/load_scenario.h"
#include "tools/simulation/process_memory.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/parallel_for.h"
#include "tools/study/plan_search.h"
#include "tools/study/step_bound.h"
#include "tools/study/sweep.h"

namespace herdsim {
namespace {

Scenario base_405b(int64_t gpus) {
  Scenario base = load_scenario("llama3-405b-16384", {"software={base: \"megatron-te\"}"});
  base.gpus = gpus;
  return base;
}

void rate(benchmark::State& state, const char* name, double count, double goal) {
  state.counters[name] = benchmark::Counter(count, benchmark::Counter::kIsRate);
  state.counters["goal_a_second"] = goal;
}

// Goal: 100,000 a second.
void closed_form_bounds(benchmark::State& state) {
  const Scenario base = base_405b(16'384);
  PlanPins pins;
  pins.tp = 8;
  const std::vector<PlanCandidate> space = plan_space(base, pins);
  const StepBounds bounds(base, space);
  double done = 0;
  for (auto _ : state) {
    for (const PlanCandidate& c : space) benchmark::DoNotOptimize(bounds.quick(c));
    done += static_cast<double>(space.size());
  }
  rate(state, "bounds", done, 100'000);
}
BENCHMARK(closed_form_bounds)->Unit(benchmark::kMillisecond);

// Goal: 300 a second on two cores. The plans are those that a search ranks, of a machine that is
// known and of grids of ranks that are not. Argument: GPUs.
void simulated_plans(benchmark::State& state) {
  Scenario base = base_405b(state.range(0));
  base.training.global_batch = state.range(0) / 8;
  const std::vector<RankedPlan> plans = search_plans(base, {}, {.keep = 24, .threads = 2}).best;
  double done = 0;
  for (auto _ : state) {
    MachineMemo machines;  // as a search has
    parallel_for(plans.size(), 2, [&](size_t i) {
      const Scenario plan = scenario_of(base, plans[i].candidate);
      benchmark::DoNotOptimize(
          simulate_step(plan, {.result_alone = true}, machines).result.step_time);
    });
    done += static_cast<double>(plans.size());
  }
  rate(state, "plans", done, 300);
}
BENCHMARK(simulated_plans)
    ->Arg(1'024)
    ->Arg(16'384)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Goal: 10 s on two cores.
void plan_of_405b_on_16384(benchmark::State& state) {
  PlanSearch search;
  for (auto _ : state) search = search_plans(base_405b(16'384), {}, {.keep = 5, .threads = 2});
  state.counters["goal_s"] = 10;
  state.counters["candidates"] = static_cast<double>(search.candidates);
  state.counters["over_memory"] = static_cast<double>(search.over_memory());
  state.counters["outbid"] = static_cast<double>(search.outbid());
  state.counters["simulated"] = static_cast<double>(search.simulated);
}
BENCHMARK(plan_of_405b_on_16384)->Iterations(1)->Unit(benchmark::kSecond);

// What a sweep adds to the bare simulations of its points, loading included. Goal: 2 %.
void sweep_overhead(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  const auto database =
      std::filesystem::temp_directory_path() / ("herdsim_bench_" + std::to_string(getpid()));
  SweepRequest request;
  request.scenario = "llama3-405b-16384";
  request.axes = {"seed=1:40:1"};
  request.database = database.string();
  double bare = 0, swept = 0;
  for (auto _ : state) {
    std::filesystem::remove(database);
    const auto begin = Clock::now();
    for (int seed = 1; seed <= 40; ++seed) {
      const Scenario scenario = load_scenario(request.scenario, {"seed=" + std::to_string(seed)});
      benchmark::DoNotOptimize(simulate_step(scenario, {}).result.step_time);
    }
    const auto middle = Clock::now();
    run_sweep(request);
    bare += std::chrono::duration<double>(middle - begin).count();
    swept += std::chrono::duration<double>(Clock::now() - middle).count();
  }
  for (const char* suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(database.string() + suffix);
  state.counters["overhead_percent"] = 100 * (swept / bare - 1);
  state.counters["goal_percent"] = 2;
}
BENCHMARK(sweep_overhead)->Iterations(3)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace herdsim

int main(int argc, char** argv) {
  herdsim::keep_freed_memory();  // as the program does
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

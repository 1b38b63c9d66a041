// Weeks of training: how long a replica takes. Goals stand beside the figures.
#include <benchmark/benchmark.h>

#include "sim/job/campaign.h"

namespace herdsim {
namespace {

CampaignRequest request_of(int64_t gpus, double days, int64_t replicas) {
  return {.scenario = "bench",
          .machine = {.gpus = gpus},
          .recovery = {.spares = 64},
          .run = {.days = days, .replicas = replicas},
          .nominal_step = milliseconds(6'200),
          .data_parallel = gpus / 128,
          .tokens_per_step = 2048 * 8192};
}

void run(benchmark::State& state, const CampaignRequest& request, int threads, double goal_ms) {
  const CampaignSpec spec = resolve(request);
  const PaceOfTheSlowest model(
      {.nominal = request.nominal_step, .data_parallel = request.data_parallel});
  int64_t events = 0;
  for (auto _ : state) {
    const RunResult result = run_campaign(spec, model, {.threads = threads});
    benchmark::DoNotOptimize(result.replicas.data());
    for (const ReplicaResult& replica : result.replicas) events += replica.events;
  }
  state.counters["goal_ms"] = goal_ms;
  state.counters["events"] =
      benchmark::Counter(static_cast<double>(events), benchmark::Counter::kAvgIterations);
}

// 54 days at 16,384 GPUs: 50 ms a replica.
void days_54_at_16384(benchmark::State& state) { run(state, request_of(16'384, 54, 1), 1, 50); }
BENCHMARK(days_54_at_16384)->Unit(benchmark::kMillisecond);

// 1,000 replicas of it on two cores: 30 s.
void thousand_replicas_on_two_cores(benchmark::State& state) {
  run(state, request_of(16'384, 54, 1000), 2, 30'000);
}
BENCHMARK(thousand_replicas_on_two_cores)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

// A year at 131,072 GPUs: 1 s a replica.
void year_at_131072(benchmark::State& state) { run(state, request_of(131'072, 365, 1), 1, 1'000); }
BENCHMARK(year_at_131072)->Unit(benchmark::kMillisecond);

// The same with every class and slow component, and a save every step.
void year_at_131072_of_everything(benchmark::State& state) {
  CampaignRequest request = request_of(131'072, 365, 1);
  request.reliability.base = "shared-fleet";
  request.checkpoint.policy = "in-memory";
  run(state, request, 1, 1'000);
}
BENCHMARK(year_at_131072_of_everything)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace herdsim

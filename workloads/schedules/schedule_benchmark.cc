// The order of one stage of the largest schedule in use: 16 stages, 16 micro-batches, 8 chunks.
// Goal: 10 us, so that lowering all stages costs less than simulating one of their layers.
#include <benchmark/benchmark.h>

#include "workloads/schedules/schedule.h"
#include "workloads/schedules/schedule_timeline.h"

namespace herdsim {
namespace {

constexpr ScheduleShape kLlama{.stages = 16, .micro_batches = 16, .virtual_stages = 8};

void order_of_a_stage(benchmark::State& state) {
  const ScheduleRow* row = find_schedule("interleaved-1f1b");
  for (auto _ : state) benchmark::DoNotOptimize(row->order(kLlama, 0));
  state.counters["goal_us"] = 10;
}
BENCHMARK(order_of_a_stage)->Unit(benchmark::kMicrosecond);

void timeline_of_all_stages(benchmark::State& state) {
  const ScheduleRow* row = find_schedule("interleaved-1f1b");
  const PassTimes times{milliseconds(1), milliseconds(1), milliseconds(1), microseconds(10)};
  for (auto _ : state) benchmark::DoNotOptimize(time_schedule(*row, kLlama, times));
  state.counters["goal_us"] = 1000;
}
BENCHMARK(timeline_of_all_stages)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace herdsim

// Goal: below 200 ns for the cost of any kernel. Each line shows the goal, in nanoseconds, beside
// the figure.
#include <benchmark/benchmark.h>

#include "calibrate/profile/profile_file.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

constexpr double kGoalNanoseconds = 200;

void gemm(benchmark::State& state) {
  const DeviceProfile profile = load_profile("h100-sxm5-80gb");
  GemmShape shape{.m = 1000, .n = 8192, .k = 7168};
  for (auto _ : state) {
    shape.m = 1000 + (shape.m + 977) % 20000;
    benchmark::DoNotOptimize(gemm_cost(shape, profile));
  }
  state.counters["goal_ns"] = kGoalNanoseconds;
}
BENCHMARK(gemm);

void attention(benchmark::State& state) {
  const DeviceProfile profile = load_profile("h100-sxm5-80gb");
  const AttentionKernelId kernel = *profile.attention_kernel("fa3");
  AttentionShape shape{.batch = 1,
                       .query_tokens = 1000,
                       .kv_tokens = 1000,
                       .heads = 16,
                       .kv_heads = 2,
                       .head_dim = 128,
                       .mask_fraction = state.range(0) == 0 ? 0.5 : 0.7};
  for (auto _ : state) {
    shape.query_tokens = shape.kv_tokens = 1000 + (shape.kv_tokens + 977) % 16000;
    benchmark::DoNotOptimize(attention_cost(shape, kernel, profile));
  }
  state.counters["goal_ns"] = kGoalNanoseconds;
}
BENCHMARK(attention)->ArgName("mixed_mask")->Arg(0)->Arg(1);

void stream(benchmark::State& state) {
  const DeviceProfile profile = load_profile("h100-sxm5-80gb");
  int64_t bytes = 1 << 20;
  for (auto _ : state) {
    bytes = (1 << 20) + (bytes + 123457) % (1 << 30);
    benchmark::DoNotOptimize(stream_cost({Bytes(bytes), StreamClass::kFused}, profile));
  }
  state.counters["goal_ns"] = kGoalNanoseconds;
}
BENCHMARK(stream);

}  // namespace
}  // namespace herdsim

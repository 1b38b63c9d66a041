// Contended transfers that end a second, ours and SimGrid's, in one run. A program can run SimGrid
// once, so each case is measured once, for a fixed simulated time.
#include <benchmark/benchmark.h>

#include "tests/simgrid/simgrid_world.h"

namespace herdsim {
namespace {

void ends_a_second(benchmark::State& state) {
  const auto lanes = static_cast<size_t>(state.range(0));
  const LaneTraffic ours{.hosts = 1024,
                         .lanes = lanes,
                         .warm_up = milliseconds(state.range(1)),
                         .simulated = milliseconds(20)};
  LaneTraffic theirs = ours;
  theirs.simulated = microseconds(state.range(2));
  LaneResult a, b;
  for (auto _ : state) {
    a = herdsim_lanes(ours);
    b = simgrid_lanes(theirs);
  }
  const double rate = static_cast<double>(a.ends) / a.cpu_seconds;
  const double simgrid = static_cast<double>(b.ends) / b.cpu_seconds;
  state.counters["ends_per_s"] = rate;
  state.counters["simgrid_ends_per_s"] = simgrid;
  state.counters["times"] = rate / simgrid;
  state.counters["goal_times"] = lanes >= 16'384 ? 50 : 20;
}
BENCHMARK(ends_a_second)->Args({4'096, 4, 100})->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(ends_a_second)->Args({16'384, 12, 100})->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace herdsim

// The hold model: a fixed number of events pending, each of which schedules one more. Goals are in
// the counter beside the figure; a core of a busy shared machine is taken to be half as fast as it
// looks.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/engine/engine.h"

namespace herdsim {
namespace {

// Delays between 1 ns and 1 ms, drawn before the clock starts.
std::vector<int64_t> delays() {
  std::vector<int64_t> result(1 << 16);
  uint64_t state = 1;
  for (int64_t& d : result) d = 1 + static_cast<int64_t>((state = mix64(state)) % 1'000'000);
  return result;
}

void hold(benchmark::State& state) {
  const std::vector<int64_t> delay = delays();
  Engine engine;
  struct Hold {
    Engine& engine;
    const std::vector<int64_t>& delay;
    uint32_t next = 0;
    void schedule() {
      engine.after(nanoseconds(delay[next++ & 0xffff]), [this] { schedule(); });
    }
  } model{engine, delay};
  for (int64_t i = 0; i < state.range(0); ++i) model.schedule();
  engine.run_until(engine.now() + milliseconds(2));
  const int64_t before = engine.events_run();
  for (auto _ : state) {
    // About 10,000 events.
    engine.run_until(engine.now() + nanoseconds(5'000'000'000 / state.range(0)));
  }
  const double events = static_cast<double>(engine.events_run() - before);
  state.counters["events_per_s"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["ns_per_event"] =
      benchmark::Counter(events * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  if (state.range(0) == 10'000) state.counters["goal_events_per_s"] = 10e6;
}
BENCHMARK(hold)->Arg(100)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->MinTime(0.5);

// Timers that nearly never fire: each event cancels one and sets another.
void schedule_and_cancel(benchmark::State& state) {
  Engine engine;
  std::vector<EventId> timers(static_cast<size_t>(state.range(0)));
  size_t next = 0;
  for (EventId& t : timers) t = engine.after(seconds(10), [] {});
  for (auto _ : state) {
    engine.cancel(timers[next]);
    timers[next] = engine.after(seconds(10), [] {});
    if (++next == timers.size()) next = 0;
  }
  state.counters["goal_ns"] = 100;
}
BENCHMARK(schedule_and_cancel)->Arg(10'000)->MinTime(0.5);

}  // namespace
}  // namespace herdsim

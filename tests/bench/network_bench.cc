// Sharing and moving on a two-layer Clos network: hosts under racks of 32, 32 spines, random
// routes. Links: host up, host down, rack to spine, spine to rack. Goals are in the counter beside
// the figure.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/engine/engine.h"
#include "sim/network/fluid_network.h"
#include "sim/network/incremental_max_min.h"

namespace herdsim {
namespace {

constexpr size_t kRack = 32;

class Draws {
 public:
  size_t below(size_t n) { return static_cast<size_t>((state_ = mix64(state_)) % n); }

 private:
  uint64_t state_ = 7;
};

using Route = std::array<Crossing, 4>;

std::vector<Bandwidth> clos_capacities(size_t hosts) {
  return std::vector<Bandwidth>(4 * hosts, gigabits_per_second(400));
}

Route clos_route(size_t hosts, size_t from, size_t to, size_t spine) {
  return {{{LinkId(from)},
           {LinkId(hosts + to)},
           {LinkId(2 * hosts + from / kRack * kRack + spine)},
           {LinkId(3 * hosts + to / kRack * kRack + spine)}}};
}

std::vector<size_t> random_permutation(size_t n, Draws& draws) {
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  for (size_t i = n; i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  return order;
}

// All flows added, shared and removed: what a solver used once a phase would cost.
void solve_from_scratch(benchmark::State& state) {
  const size_t hosts = static_cast<size_t>(state.range(0));
  Draws draws;
  const std::vector<Bandwidth> capacities = clos_capacities(hosts);
  const std::vector<size_t> to = random_permutation(hosts, draws);
  std::vector<Route> routes;
  for (size_t h = 0; h < hosts; ++h)
    routes.push_back(clos_route(hosts, h, to[h], draws.below(kRack)));
  IncrementalMaxMin sharing(capacities);
  std::vector<FlowId> flows(hosts);
  for (auto _ : state) {
    for (size_t h = 0; h < hosts; ++h) flows[h] = sharing.add(routes[h], Bandwidth::unlimited());
    benchmark::DoNotOptimize(sharing.solve());
    for (const FlowId flow : flows) sharing.remove(flow);
  }
  state.counters["links"] = static_cast<double>(capacities.size());
  if (hosts == 16'384) state.counters["goal_ms"] = 10;
}
BENCHMARK(solve_from_scratch)->Arg(1'024)->Arg(16'384)->Unit(benchmark::kMillisecond)->MinTime(0.5);

// Keeps `lanes` transfers going: each that ends starts the next of its lane.
struct Traffic {
  Engine engine;
  FluidNetwork network;
  size_t hosts;
  size_t lanes;
  Draws draws;
  int64_t ended = 0;

  explicit Traffic(size_t hosts_in, size_t lanes_in)
      : network(engine, clos_capacities(hosts_in)), hosts(hosts_in), lanes(lanes_in) {}

  void run(benchmark::State& state, Duration warm_up, Duration slice) {
    engine.run_until(engine.now() + warm_up);
    const int64_t before = ended;
    const int64_t visited = network.sharing().flows_visited();
    for (auto _ : state) engine.run_until(engine.now() + slice);
    const double n = static_cast<double>(ended - before);
    state.counters["ends_per_s"] = benchmark::Counter(n, benchmark::Counter::kIsRate);
    state.counters["ns_per_flow"] =
        benchmark::Counter(n * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
    state.counters["visits_per_flow"] =
        static_cast<double>(network.sharing().flows_visited() - visited) / n;
  }
};

// Pipeline sends: every host sends to a partner of its own over links that nobody else uses.
void lone_transfers(benchmark::State& state) {
  Traffic traffic(4'096, 4'096);
  struct Lanes {
    Traffic& t;
    void send(uint32_t host) {
      const Route route = clos_route(t.hosts, host, host ^ 1u, host % kRack);
      t.network.start(Bytes(static_cast<int64_t>(1'000'000 + t.draws.below(1'000'000))), route,
                      gigabytes_per_second(48), [this, host] {
                        ++t.ended;
                        send(host);
                      });
    }
  } lanes{traffic};
  for (uint32_t h = 0; h < traffic.lanes; ++h) lanes.send(h);
  traffic.run(state, milliseconds(1), microseconds(50));
  state.counters["goal_ns"] = 300;
}
BENCHMARK(lone_transfers)->MinTime(0.5);

// 4,096 transfers between random pairs over random spines: nearly all in one component.
void random_contention(benchmark::State& state) {
  Traffic traffic(4'096, 4'096);
  struct Lanes {
    Traffic& t;
    void send(uint32_t host) {
      const Route route = clos_route(t.hosts, host, t.draws.below(t.hosts), t.draws.below(kRack));
      t.network.start(Bytes(static_cast<int64_t>(10'000'000 + t.draws.below(10'000'000))), route,
                      gigabytes_per_second(48), [this, host] {
                        ++t.ended;
                        send(host);
                      });
    }
  } lanes{traffic};
  for (uint32_t h = 0; h < traffic.lanes; ++h) lanes.send(h);
  traffic.run(state, milliseconds(5), microseconds(100));
  state.counters["goal_ends_per_s"] = 300e3;
}
BENCHMARK(random_contention)->MinTime(0.5);

// 4,096 transfers among 1,024 hosts, so each link is shared by four: every end moves hundreds of
// others.
void heavy_random_contention(benchmark::State& state) {
  Traffic traffic(1'024, 4'096);
  struct Lanes {
    Traffic& t;
    void send(uint32_t lane) {
      const Route route =
          clos_route(t.hosts, lane % t.hosts, t.draws.below(t.hosts), t.draws.below(kRack));
      t.network.start(Bytes(static_cast<int64_t>(10'000'000 + t.draws.below(10'000'000))), route,
                      gigabytes_per_second(48), [this, lane] {
                        ++t.ended;
                        send(lane);
                      });
    }
  } lanes{traffic};
  for (uint32_t l = 0; l < traffic.lanes; ++l) lanes.send(l);
  traffic.run(state, milliseconds(5), microseconds(100));
  state.counters["goal_ends_per_s"] = 25e3;
}
BENCHMARK(heavy_random_contention)->MinTime(0.5);

// Data-parallel phases: in each of 32 lanes 128 hosts of four racks send to four other racks, all
// at once, over all spines; when the last is done the next batch of the lane starts. Four lanes
// share each rack.
void batches_of_128(benchmark::State& state) {
  Traffic traffic(1'024, 4'096);
  struct Lanes {
    Traffic& t;
    std::array<uint32_t, 32> under_way{};
    void batch(uint32_t lane) {
      const Bytes volume(static_cast<int64_t>(10'000'000 + t.draws.below(10'000'000)));
      under_way[lane] = 128;
      for (uint32_t i = 0; i < 128; ++i) {
        const size_t from = (lane * 128 + i) % t.hosts, to = (lane * 5 * 128 + 384 + i) % t.hosts;
        t.network.start(volume, clos_route(t.hosts, from, to, (i + lane) % kRack),
                        gigabytes_per_second(48), [this, lane] {
                          ++t.ended;
                          if (--under_way[lane] == 0) batch(lane);
                        });
      }
    }
  } lanes{traffic};
  for (uint32_t lane = 0; lane < 32; ++lane) lanes.batch(lane);
  traffic.run(state, milliseconds(10), microseconds(100));
  state.counters["goal_ends_per_s"] = 300e3;
}
BENCHMARK(batches_of_128)->MinTime(0.5);

}  // namespace
}  // namespace herdsim

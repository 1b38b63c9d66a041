#include <array>
#include <ctime>
#include <memory>

#include "sim/base/fingerprint.h"
#include "sim/engine/engine.h"
#include "sim/network/fluid_network.h"
#include "tests/simgrid/simgrid_world.h"

namespace herdsim {

size_t lane_destination(const LaneTraffic& traffic, size_t lane) {
  const size_t to = static_cast<size_t>(mix64(lane) % (traffic.hosts - 1));
  return to < lane % traffic.hosts ? to : to + 1;
}

Bytes lane_volume(size_t lane, size_t turn) {
  return Bytes(static_cast<int64_t>(10'000'000 + mix64(lane ^ mix64(turn)) % 10'000'000));
}

std::vector<double> herdsim_ends(const std::vector<FlowSystem>& systems) {
  std::vector<double> ends;
  for (const FlowSystem& system : systems) {
    Engine engine;
    FluidNetwork network(engine, system.capacities);
    const size_t first = ends.size();
    ends.resize(first + system.flows.size(), -1);
    for (size_t f = 0; f < system.flows.size(); ++f) {
      const TimedFlow& flow = system.flows[f];
      double* end = &ends[first + f];
      engine.after(flow.start, [&engine, &network, &flow, end] {
        network.start(flow.volume, flow.path, flow.cap,
                      [&engine, end] { *end = (engine.now() - Instant::start()).seconds(); });
      });
    }
    engine.run();
  }
  return ends;
}

namespace {

struct Lanes {
  explicit Lanes(const LaneTraffic& t) : traffic(t), network(engine, capacities(t)) {
    turn.assign(t.lanes, 0);
  }
  static constexpr size_t kRack = 32;
  static std::vector<Bandwidth> capacities(const LaneTraffic& t) {
    std::vector<Bandwidth> all(2 * t.hosts, gigabits_per_second(400));
    all.resize(2 * t.hosts + 2 * (t.hosts / kRack), gigabits_per_second(400) * (kRack / 4));
    return all;
  }
  void send(uint32_t lane) {
    const size_t from = lane % traffic.hosts, to = lane_destination(traffic, lane);
    const size_t racks = 2 * traffic.hosts;
    const std::array<Crossing, 4> path = {{{LinkId(from)},
                                           {LinkId(traffic.hosts + to)},
                                           {LinkId(racks + from / kRack)},
                                           {LinkId(racks + traffic.hosts / kRack + to / kRack)}}};
    network.start(lane_volume(lane, turn[lane]++), path, Bandwidth::unlimited(), [this, lane] {
      ++ends;
      send(lane);
    });
  }

  const LaneTraffic traffic;
  Engine engine;
  FluidNetwork network;
  std::vector<size_t> turn;
  int64_t ends = 0;
};

}  // namespace

LaneResult herdsim_lanes(const LaneTraffic& traffic) {
  const auto lanes = std::make_unique<Lanes>(traffic);
  for (uint32_t lane = 0; lane < traffic.lanes; ++lane) lanes->send(lane);
  lanes->engine.run_until(Instant::start() + traffic.warm_up);
  const int64_t before = lanes->ends;
  const std::clock_t ticks = std::clock();
  lanes->engine.run_until(Instant::start() + traffic.warm_up + traffic.simulated);
  return {lanes->ends - before, static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC};
}

}  // namespace herdsim

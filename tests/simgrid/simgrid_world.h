// Systems of links and flows that run in SimGrid and in our network alike.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/fabric/crossing.h"

namespace herdsim {

struct TimedFlow {
  std::vector<Crossing> path;  // of single crossings
  Bytes volume;
  Duration start;
  Bandwidth cap;
};

struct FlowSystem {
  std::vector<Bandwidth> capacities;
  std::vector<TimedFlow> flows;
};

// The end of every flow in seconds, in the order of systems and flows. All systems lie in one world
// that shares nothing between them: SimGrid can only run once a process.
std::vector<double> simgrid_ends(const std::vector<FlowSystem>& systems);
std::vector<double> herdsim_ends(const std::vector<FlowSystem>& systems);

// Lanes that send without pause between fixed pairs of hosts: NIC up, rack up, rack down, NIC down,
// racks of 32 oversubscribed four to one, `lanes / hosts` lanes a host. How many transfers end in
// the time given after a warm-up, and the processor time that takes.
struct LaneTraffic {
  size_t hosts = 1024;
  size_t lanes = 4096;
  Duration warm_up, simulated;
};
struct LaneResult {
  int64_t ends = 0;
  double cpu_seconds = 0;
};
LaneResult simgrid_lanes(const LaneTraffic& traffic);
LaneResult herdsim_lanes(const LaneTraffic& traffic);

// Host and volume of a lane, for both.
size_t lane_destination(const LaneTraffic& traffic, size_t lane);
Bytes lane_volume(size_t lane, size_t turn);

}  // namespace herdsim

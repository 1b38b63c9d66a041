// How well a routing spreads connections over the parallel lanes of a bundle of cables.
//
// The fabric keeps the cables between two layers as one link of many lanes. That is exact where
// every packet may take any lane. Where a hash pins a flow to a lane, flows collide, and a
// connection waits for the lane with the most of them:
//
//   1. A connection is `subflows` equal flows, one a queue pair. Each takes one lane of its ToR's
//      uplinks; inside a pod that names the spine, and so the lane of the destination's downlinks.
//      Across pods it takes one lane of the pod's uplinks, of the other pod's downlinks and of the
//      destination's downlinks.
//   2. All connections run at once, as those of rings do. A lane shares itself out evenly, so a
//      subflow gets min(1, lane / load) of its part of the NIC on the worst of its lanes.
//   3. A connection gets between `subflows` times its slowest subflow (each carries a fixed part of
//      every message) and the sum of them (a queue pair that is free takes the next message):
//      slowest + rebalanced * (sum - slowest).
//
// A ring moves at the pace of its slowest edge and rings meet at every step's ends, so the slowest
// connection stands for all of its kind: folding stays exact. Its slowdown is a maximum of random
// draws; `error` is the standard deviation of that maximum over seeds, taken from the maxima of
// eight parts of the connections (the spread of a maximum hardly depends on how many it is of).
//
// Beyond 65,536 subflows only the connections of every n-th ToR are looked at, and the maximum is
// carried on to all of them by Gumbel's law.
//
//   const LaneSpread hashed{.rule = SpreadRule::kHashed, .subflows = 16};
//   connection_slowdown(fabric, lanes, connections, 1, hashed, seed).worst   // 1.4: 40 % longer
//
// Check: tests/topologies/routing_test.cc shares the same subflows max-min fairly over single
// lanes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/fabric/fabric.h"

namespace herdsim {

enum class SpreadRule : uint8_t {
  kEven,         // packet by packet, over all lanes: nothing collides
  kHashed,       // a subflow takes a lane at random and keeps it
  kHashedApart,  // the first of a connection does, the others take the lanes after it
  kPinned,       // a connection takes the lane of the number of its destination's port
  kPlanned,      // subflows in turn take the lane with the least load on both sides
};

struct LaneSpread {
  SpreadRule rule = SpreadRule::kEven;
  int64_t subflows = 1;   // of a connection
  double rebalanced = 0;  // 0: messages are split; 1: as if every queue pair were always busy
  double line_share = 1;  // of the line rate that is left without any collision
  // Times what a collision adds: pauses of full switches reach flows that are not in it.
  double mean_excess = 1, worst_excess = 1;
};

// Two GPUs under different ToRs.
struct Connection {
  GpuId from, to;
};

struct SpreadEffect {
  double worst = 1;  // times as long as without collisions, the slowest connection
  double mean = 1;   // of all connections
  double error = 0;  // standard deviation of `worst` over seeds
  int64_t connections = 0;
};

// The lanes of all bundles above ToRs, up and down, numbered through.
class LaneBundles {
 public:
  // `working_lanes` of a link, at least one. Asked for bundles only.
  LaneBundles(const Fabric& fabric, const std::function<uint32_t(LinkId)>& working_lanes);

  // Numbers of bundles are from 0, in the order of their links. Requires: a bundle.
  size_t number(LinkId bundle) const { return bundle.index() - first_bundle_; }
  size_t bundles() const { return first_lane_.size() - 1; }

  uint32_t first_lane(size_t number) const { return first_lane_[number]; }
  uint32_t lanes(size_t number) const { return first_lane_[number + 1] - first_lane_[number]; }
  size_t total_lanes() const { return first_lane_.back(); }

 private:
  size_t first_bundle_ = 0;                 // the lowest link; they are numbered together
  std::vector<uint32_t> first_lane_ = {0};  // by bundle, and one more
};

// `sharing` connections leave each NIC at a time, each with an equal part of it. Deterministic for
// a seed.
// Complexity: O(ToRs + lanes + connections * subflows), times the lanes where they are planned; of
// subflows beyond 65,536 a sample.
SpreadEffect connection_slowdown(const Fabric& fabric, const LaneBundles& bundles,
                                 std::span<const Connection> connections, int64_t sharing,
                                 const LaneSpread& spread, uint64_t seed);

// The lanes that subflow `index` of the connection takes, for tests: a link and a lane each.
struct LaneHop {
  LinkId link;
  uint32_t lane;
};
std::vector<std::vector<LaneHop>> subflow_lanes(const Fabric& fabric, const LaneBundles& bundles,
                                                std::span<const Connection> connections,
                                                const LaneSpread& spread, uint64_t seed);

}  // namespace herdsim

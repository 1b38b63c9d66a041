// How flows choose among equal paths: rows with a source each.
//
//   ecmp                 queue pairs on random lanes; messages take turns on them
//   ecmp-split           the same, but each message is cut in equal parts
//   e-ecmp               the queue pairs of a connection on lanes apart
//   path-pinning         the lane of the number of the destination's port
//   adaptive, packet-spraying   packet by packet: no collisions, 3 % lost
//   traffic-engineering  each flow on the least loaded lane
//   valiant, ugal        on a dragonfly all, or a share, of the paths by way of a third group
//
// Plain ECMP hashes the five-tuple, in which the queue pairs of a connection may not differ; a
// scenario says how many distinct flows there are as `queue_pairs` (NCCL's channels alone make 2 to
// 4). E-ECMP with as many queue pairs as a ToR has GPUs is as good as no collisions, so that what
// traffic engineering was published to gain over it (5 to 10 %) is only seen over ecmp here.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/provenance.h"
#include "sim/fabric/lane_spread.h"
#include "topologies/cluster.h"

namespace herdsim {

struct Routing {
  std::string_view name;
  std::string_view help;
  Provenance provenance;
  SpreadRule rule;
  bool uses_queue_pairs;  // false: cluster.queue_pairs changes nothing
  double rebalanced;      // see LaneSpread
  double line_share;
  // Of a dragonfly, see detour_share(): paths by way of a third group.
  enum class Detours : uint8_t { kNone, kSome, kAll };
  Detours detours = Detours::kNone;
};

const std::vector<Routing>& routings();
// Null if there is none of that name.
const Routing* find_routing(std::string_view name);

// Of the paths between two groups of a dragonfly, those by way of a third one: none on minimal
// routes, all on Valiant's, the spec's own share on UGAL's, which a switch decides by its queues.
// Requires: the spec's routing is a row.
double detour_share(const ClusterSpec& spec);

// In a mesh paths are the topology's own and lanes side by side are shared evenly: nothing is
// hashed. Requires: the spec's routing and buffers are rows.
LaneSpread lane_spread(const ClusterSpec& spec);

}  // namespace herdsim

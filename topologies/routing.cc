#include "topologies/routing.h"

#include "sim/base/check.h"
#include "topologies/switch_buffers.h"

namespace herdsim {

const std::vector<Routing>& routings() {
  // What messages that take turns on the queue pairs of a connection gain of the difference between
  // the slowest of them and their sum.
  constexpr double kByTurns = 0.9;
  static const std::vector<Routing> rows = {
      {.name = "ecmp",
       .help = "A switch hashes each flow onto one lane; a connection has as many flows as queue "
               "pairs, and messages take turns on them (NCCL since 2.20).",
       .provenance = {Evidence::kAssumed,
                      "balls in bins; 0.9 of the difference between slowest and sum, 0 to 1; "
                      "NCCL_IB_SPLIT_DATA_ON_QPS=0 is NCCL's default since 2.20"},
       .rule = SpreadRule::kHashed,
       .uses_queue_pairs = true,
       .rebalanced = kByTurns,
       .line_share = 1},
      {.name = "ecmp-split",
       .help = "As ecmp, but each message is cut into equal parts, one a queue pair: it waits for "
               "the slowest.",
       .provenance = {Evidence::kPublished,
                      "balls in bins; NCCL before 2.20, "
                      "NCCL_IB_SPLIT_DATA_ON_QPS=1"},
       .rule = SpreadRule::kHashed,
       .uses_queue_pairs = true,
       .rebalanced = 0,
       .line_share = 1},
      {.name = "e-ecmp",
       .help = "ECMP that also hashes the RoCE header's queue pair: the queue pairs of a "
               "connection, numbered one after another, take different lanes.",
       .provenance = {Evidence::kPublished,
                      "arXiv:2407.21783: it \"effectively balances these 16 flows across different "
                      "network paths\"; Gangidi et al., SIGCOMM 2024: all-reduce up to 40 % over "
                      "ECMP"},
       .rule = SpreadRule::kHashedApart,
       .uses_queue_pairs = true,
       .rebalanced = kByTurns,
       .line_share = 1},
      {.name = "path-pinning",
       .help = "A packet's uplink is the number of its destination's port at its ToR: no collision "
               "between two racks of one job, many where racks are shared.",
       .provenance = {Evidence::kPublished,
                      "Gangidi et al., SIGCOMM 2024: up to 30 % worse "
                      "training where jobs are fragmented"},
       .rule = SpreadRule::kPinned,
       .uses_queue_pairs = false,
       .rebalanced = 0,
       .line_share = 1},
      {.name = "adaptive",
       .help = "Switches send each packet to the port with the shortest queue (InfiniBand adaptive "
               "routing).",
       .provenance = {Evidence::kAssumed, "3 to 5 % below ideal; vendors claim 95 % of line rate"},
       .rule = SpreadRule::kEven,
       .uses_queue_pairs = false,
       .rebalanced = 1,
       .line_share = 0.97},
      {.name = "packet-spraying",
       .help =
           "NICs spread the packets of a connection over all paths and put them in order again.",
       .provenance = {Evidence::kVendor,
                      "Spectrum-X: 95 % of line rate, taken with headers in "
                      "nic_efficiency; 0.95 to 0.98"},
       .rule = SpreadRule::kEven,
       .uses_queue_pairs = false,
       .rebalanced = 1,
       .line_share = 0.97},
      {.name = "traffic-engineering",
       .help = "A controller puts each flow on the least loaded path and looks again every half "
               "minute.",
       .provenance = {Evidence::kPublished,
                      "Gangidi et al., SIGCOMM 2024: 5 to 10 % over E-ECMP, paths by CSPF"},
       .rule = SpreadRule::kPlanned,
       .uses_queue_pairs = true,
       .rebalanced = 0,
       .line_share = 1},
      {.name = "valiant",
       .help =
           "On a dragonfly every path between two groups goes by way of a third one: half of the "
           "best traffic's rate, and of the worst's too. Elsewhere as adaptive.",
       .provenance = {Evidence::kPublished,
                      "Valiant, SIAM J. Comput. 1982; Kim et al., ISCA 2008, section 4"},
       .rule = SpreadRule::kEven,
       .uses_queue_pairs = false,
       .rebalanced = 1,
       .line_share = 0.97,
       .detours = Routing::Detours::kAll},
      {.name = "ugal",
       .help = "On a dragonfly switches send a share of the paths (detour_share) by way of a third "
               "group, as their queues tell them. Elsewhere as adaptive.",
       .provenance =
           {Evidence::kAssumed,
            "UGAL: Singh, Stanford 2005; Kim et al., ISCA 2008, section 4. The share follows "
            "from the traffic: 0 where it is even, (groups - 2) / groups where each "
            "group sends to the next one"},
       .rule = SpreadRule::kEven,
       .uses_queue_pairs = false,
       .rebalanced = 1,
       .line_share = 0.97,
       .detours = Routing::Detours::kSome},
  };
  return rows;
}

const Routing* find_routing(std::string_view name) {
  for (const Routing& row : routings()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

double detour_share(const ClusterSpec& spec) {
  switch (find_routing(spec.routing)->detours) {
    case Routing::Detours::kNone:
      return 0;
    case Routing::Detours::kSome:
      return spec.detour_share;
    case Routing::Detours::kAll:
      return 1;
  }
  return 0;
}

LaneSpread lane_spread(const ClusterSpec& spec) {
  const Routing* row = find_routing(spec.routing);
  HERDSIM_CHECK(row != nullptr) << spec.routing;
  const Topology* topology = find_topology(spec.topology);
  if (topology != nullptr && topology->is_mesh) {
    // Paths are the topology's; what is lost beside collisions stays.
    return {.rule = SpreadRule::kEven, .line_share = row->line_share};
  }
  const SwitchBuffers* buffers = find_switch_buffers(spec.buffers);
  HERDSIM_CHECK(buffers != nullptr) << spec.buffers;
  return {.rule = row->rule,
          .subflows = row->uses_queue_pairs ? spec.queue_pairs : 1,
          .rebalanced = row->rebalanced,
          .line_share = row->line_share,
          .mean_excess = buffers->mean_factor,
          .worst_excess = buffers->tail_factor};
}

}  // namespace herdsim

#include "sim/collectives/collective.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/collectives/nccl_model.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/collectives/torus_collective.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, kCollectiveKinds> kKindNames = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv"};
constexpr std::array<std::string_view, 10> kAlgorithmNames = {
    "ring", "tree", "nvls", "nvlstree", "pat", "collnet", "pairwise", "torus", "to store", "from store"};
constexpr std::array<std::string_view, 3> kProtocolNames = {"simple", "ll", "ll128"};

Duration microseconds_rounded_up(double us) { return seconds_rounded_up(us * 1e-6); }

double as_double(int64_t n) { return static_cast<double>(n); }

// Up to here an all-reduce is all latency.
constexpr Bytes kSmallReduce = mebibytes(1);

// The part of a message that must leave (and enter) each member's NIC, or its NVLink port for a
// group inside a node: the conservation law of each kind, shared evenly by the members of a node.
struct PortShare {
  int64_t numerator = 1, denominator = 1;

  Bytes of(Bytes bytes) const {
    const Int128 product = static_cast<Int128>(bytes.count()) * numerator;
    return Bytes(static_cast<int64_t>((product + denominator - 1) / denominator));
  }
  double value() const { return as_double(numerator) / as_double(denominator); }
};

PortShare port_share(CollectiveKind kind, const GroupShape& g, Algorithm algorithm) {
  const int64_t r = g.ranks, p = g.ranks_per_node(), n = g.nodes;
  const int64_t ports = n > 1 ? p : 1;  // that share an edge of a ring
  switch (kind) {
    case CollectiveKind::kAllReduce:
      // A port sends its vector to be reduced in the switch, and its part of the result to all.
      if (algorithm == Algorithm::kNvls) return {r + 1, r};
      // Once into the switches and once out of them.
      if (algorithm == Algorithm::kCollNet) return {1, p};
      // Up a tree of nodes and down again, every node but the root.
      if (n > 1 && algorithm != Algorithm::kRing) return {2 * (n - 1), n * p};
      return {2 * (r - 1), r * ports};
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return {r - 1, r * ports};
    case CollectiveKind::kAllToAll:
      return {n > 1 ? r - p : r - 1, r};
    case CollectiveKind::kBroadcast:
      return {1, ports};
    case CollectiveKind::kSendRecv:
      break;
  }
  return {};
}

// How often a member's NVLink port carries the rate of its NIC.
int64_t nvlink_crossings(CollectiveKind kind, const GroupShape& g, Algorithm algorithm) {
  if (g.nodes == 1) return 1;
  const int64_t p = g.ranks_per_node();
  if (kind == CollectiveKind::kSendRecv) return 0;
  // Pairs in the node over pairs across nodes, to the nearest whole.
  if (kind == CollectiveKind::kAllToAll) return (2 * (p - 1) + g.ranks - p) / (2 * (g.ranks - p));
  if (algorithm == Algorithm::kNvlsTree) {
    return (g.nodes * (p + 1) + 2 * (g.nodes - 1) - 1) / (2 * (g.nodes - 1));
  }
  // As inside a node, and the sum over the nodes once more; without NVLS twice around the GPUs.
  if (algorithm == Algorithm::kCollNet) return p > 2 ? p + 1 : 2 * (p - 1);
  // A ring enters by one GPU, passes the p - 1 edges between the node's GPUs and leaves: over p
  // rails each port is on p - 1 of them.
  return p - 1;
}

// Fewer channels than there are while a thread would have less than its threshold to do.
int64_t used_channels(Bytes bytes, const GroupShape& g, Protocol protocol, int64_t channels) {
  const int64_t least = protocol == Protocol::kSimple ? 512 * 64
                        : protocol == Protocol::kLl   ? 512 * 8 * g.ranks
                                                      : 640 * 8;
  return std::clamp<int64_t>(bytes.count() / least, 1, channels);
}

// How often the data passes a ring.
int64_t passes_of(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce ? 2 : 1; }

// The correction of a collective and how often its pipeline fills.
struct AppliedCorrection {
  const CollectiveCorrection& correction;
  int64_t stages = 0;
};

AppliedCorrection correction_for(CollectiveKind kind, const GroupShape& g, const NcclTuning& t,
                                 Algorithm algorithm) {
  if (g.nodes == 1) {
    const size_t measured_ranks = g.ranks <= 2 ? 0 : g.ranks <= 5 ? 1 : 2;
    return {t.in_node[static_cast<size_t>(kind)][measured_ranks]};
  }
  switch (algorithm) {
    case Algorithm::kPairwise:
      return {kind == CollectiveKind::kAllToAll ? t.all_to_all : t.send_recv};
    case Algorithm::kPat:
      return {t.pat};
    case Algorithm::kRing:
      if (ring_bus_bandwidth(g, t) < t.ring_bandwidth) return {t.nic_ring};
      return {t.ring, passes_of(kind) * (g.ranks - 1)};
    case Algorithm::kCollNet:
      return {g.ranks_per_node() > 2 ? t.in_network_nvls : t.in_network_direct};
    case Algorithm::kTree:
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree:
    case Algorithm::kTorusRings:
    case Algorithm::kToStore:
    case Algorithm::kFromStore:
      break;
  }
  return {g.nodes == 2 ? t.tree_two_nodes : t.tree, tree_levels(g)};
}

struct Cost {
  double latency_us = 0;
  double bandwidth = 0;  // GB/s of the message
};

// PAT, and rings that NICs limit, take the time NCCL predicts for the protocol it chose. For the
// others the prediction only chooses: corrections start from the family's least latency and the
// bandwidth of its wires.
Cost choice_cost(const NcclChoice& choice, Bytes bytes, const GroupShape& g, const NcclTuning& t) {
  const NcclPrediction& best = choice.best;
  const bool limited_by_nics = ring_bus_bandwidth(g, t) < t.ring_bandwidth;
  if (best.algorithm == Algorithm::kPat ||
      (best.algorithm == Algorithm::kRing && limited_by_nics)) {
    const double transfer_us = as_double(bytes.count()) / (1000 * best.bandwidth);
    return {.latency_us = best.time_us - transfer_us, .bandwidth = best.bandwidth};
  }
  return {.latency_us = choice.least_latency_us, .bandwidth = choice.wire_bandwidth};
}

// Pairwise transfers: every member sends to each other one at a time.
Cost pairwise_cost(CollectiveKind kind, const GroupShape& g, const NcclTuning& t) {
  const double hop =
      g.nodes == 1
          ? t.ring_nvlink.ll
          : std::max(0.0, t.ring_net.simple + t.hop_extra[static_cast<size_t>(g.farthest)]);
  const double r = as_double(g.ranks), p = as_double(g.ranks_per_node());
  Cost cost{.latency_us = t.ring_base.ll + hop};
  if (kind == CollectiveKind::kAllToAll && g.nodes > 1) cost.latency_us += t.p2p_peer * (r - p);
  if (g.nodes == 1) {
    cost.bandwidth = t.ring_bandwidth * (kind == CollectiveKind::kSendRecv ? 1 : r / (r - 1));
  } else {
    cost.bandwidth = t.nic_bandwidth * (kind == CollectiveKind::kSendRecv ? 1 : r / (r - p));
  }
  return cost;
}

// A ring across hosts of a fabric that was measured in the job.
void take_measured_steps(CollectiveKind kind, Bytes bytes, const GroupShape& g, const NcclTuning& t,
                         CollectivePlan& plan) {
  const double steps = as_double((g.ranks - 1) * passes_of(kind));
  const double bandwidth = 1000 * std::min(ring_bus_bandwidth(g, t), t.ring_step_bandwidth);
  const double wire_us = as_double(bytes.count()) / as_double(g.ranks) / bandwidth;
  const double slice_us = t.ring_step_slice * as_double(ring_channels(g, t)) / bandwidth;
  const double step_us = ring_step(wire_us, t.ring_step_hop, slice_us);
  plan.latency = microseconds_rounded_up(t.ring_base.simple + steps * (step_us - wire_us));
  plan.rate_cap =
      std::max(Bandwidth::from_bytes_per_second(1),
               bytes_per_second(as_double(plan.volume.count()) / (steps * wire_us * 1e-6)));
}

bool measured(const CollectiveCorrection& c, Bytes bytes, const GroupShape& g) {
  return bytes >= c.least && bytes <= c.most && g.ranks <= c.most_ranks;
}

// What credits let through a NIC: the window of each channel on it once a round trip. An exchange of all pairs has enough
// peers in flight to keep its NIC busy.
Bandwidth window_bound(CollectiveKind kind, int64_t channels, const GroupShape& g, const NcclTuning& t) {
  const double round_trip = t.round_trip[static_cast<size_t>(g.farthest)];
  if (g.nodes == 1 || round_trip <= 0 || kind == CollectiveKind::kAllToAll) return Bandwidth::unlimited();
  const bool send = kind == CollectiveKind::kSendRecv;
  const int64_t on_a_nic = send ? channels : std::max<int64_t>(1, channels / g.ranks_per_node());
  const Bytes window = (send ? t.send_window : t.collective_window) * on_a_nic;
  return bytes_per_second(as_double(window.count()) / (round_trip * 1e-6));
}

// By NCCL's model and public measurements. Requires: several ranks, some bytes.
CollectivePlan predicted_plan(CollectiveKind kind, Bytes bytes, const GroupShape& g, const NcclTuning& t,
                              std::optional<Algorithm> asked = {}) {
  CollectivePlan plan;
  Cost cost;
  if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv) {
    plan.algorithm = Algorithm::kPairwise;
    cost = pairwise_cost(kind, g, t);
    plan.channels = g.nodes == 1 ? t.p2p_node_channels : t.p2p_network_channels;
  } else {
    const NcclChoice choice = nccl_choice(kind, bytes, g, t, asked);
    plan.algorithm = choice.best.algorithm;
    plan.protocol = choice.best.protocol;
    cost = choice_cost(choice, bytes, g, t);
    const bool nvls = plan.algorithm == Algorithm::kNvls || plan.algorithm == Algorithm::kNvlsTree ||
                      (plan.algorithm == Algorithm::kCollNet && g.ranks_per_node() > 2);
    plan.channels =
        nvls ? t.nvls_blocks : used_channels(bytes, g, plan.protocol, ring_channels(g, t));
  }
  const auto [correction, stages] = correction_for(kind, g, t, plan.algorithm);
  plan.latency =
      microseconds_rounded_up(cost.latency_us * correction.latency_factor +
                              as_double(stages) * correction.fill_microseconds.at(bytes));
  const PortShare share = port_share(kind, g, plan.algorithm);
  plan.volume = share.of(bytes);
  plan.rate_cap = std::max(
      Bandwidth::from_bytes_per_second(1),
      bytes_per_second(share.value() * cost.bandwidth * 1e9 * correction.efficiency.at(bytes)));
  if (plan.algorithm == Algorithm::kRing && g.nodes > 1 && t.ring_step_hop > 0) {
    take_measured_steps(kind, bytes, g, t, plan);
  }
  if (kind == CollectiveKind::kAllReduce && g.nodes > 1 && bytes <= kSmallReduce && g.ranks <= t.small_reduce_ranks) {
    const Duration pairs = microseconds_rounded_up(t.small_reduce_pair * as_double(g.ranks * g.ranks));
    plan.latency = std::max(plan.latency, pairs);
  }
  plan.rate_cap = std::min(plan.rate_cap, window_bound(kind, plan.channels, g, t));
  plan.nic_crossings = g.nodes > 1 ? 1 : 0;
  plan.nvlink_crossings = nvlink_crossings(kind, g, plan.algorithm);
  plan.extrapolated = !measured(correction, bytes, g);
  return plan;
}

// Keeps what a plan loads and takes the time from the user's own measurement. Beyond its sizes the
// prediction is scaled by what it was off by at the border.
void take_measured_time(CollectiveKind kind, Bytes bytes, const GroupShape& g, const NcclTuning& t,
                        CollectivePlan& plan) {
  const auto curve = std::find_if(t.measured.begin(), t.measured.end(), [&](const MeasuredCollective& m) {
    return m.kind == kind && m.ranks == g.ranks && m.nodes == g.nodes;
  });
  if (curve == t.measured.end()) return;
  const Bytes inside = std::clamp(bytes, curve->points.front().size, curve->points.back().size);
  double alone = curve->at(inside).seconds();
  if (inside != bytes) {
    alone *= plan.alone().seconds() / predicted_plan(kind, inside, g, t).alone().seconds();
  }
  // The part that does not share links; never all of it, or the transfer would need no time.
  constexpr double kMostLatency = 0.9;
  const double latency = std::min(plan.latency.seconds(), kMostLatency * alone);
  plan.latency = seconds_rounded_up(latency);
  plan.rate_cap = std::max(Bandwidth::from_bytes_per_second(1),
                           bytes_per_second(as_double(plan.volume.count()) / (alone - latency)));
  plan.extrapolated = inside != bytes;
}

}  // namespace

std::string_view collective_kind_name(CollectiveKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}
std::string_view algorithm_name(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<size_t>(algorithm)];
}
std::string_view protocol_name(Protocol protocol) {
  return kProtocolNames[static_cast<size_t>(protocol)];
}

CollectivePlan plan_collective(CollectiveKind kind, Bytes bytes, const GroupShape& g,
                               const NcclTuning& t) {
  HERDSIM_DCHECK(g.ranks >= 1 && g.nodes >= 1 && g.nodes <= g.ranks && bytes >= Bytes());
  if (g.ranks <= 1 || bytes <= Bytes()) return {};
  if (g.torus.on_torus) return plan_on_torus(kind, bytes, g, t);
  CollectivePlan plan = predicted_plan(kind, bytes, g, t);
  take_measured_time(kind, bytes, g, t, plan);
  return plan;
}

CollectivePlan plan_collective(CollectiveKind kind, Bytes bytes, const GroupShape& g, const NcclTuning& t,
                               Algorithm asked) {
  if (g.ranks <= 1 || bytes <= Bytes() || g.torus.on_torus || !applies_to(kind, g, t, asked)) {
    return plan_collective(kind, bytes, g, t);
  }
  CollectivePlan plan = predicted_plan(kind, bytes, g, t, asked);
  // Measurements are of what NCCL chose.
  if (plan.algorithm != predicted_plan(kind, bytes, g, t).algorithm) plan.extrapolated = true;
  return plan;
}

}  // namespace herdsim

#include "sim/collectives/collective.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/collectives/nccl_model.h"
#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, kCollectiveKinds> kKindNames = {
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send-recv"};
constexpr std::array<std::string_view, 7> kAlgorithmNames = {
    "ring", "tree", "nvls", "nvlstree", "pat", "collnet", "pairwise"};
constexpr std::array<std::string_view, 3> kProtocolNames = {"simple", "ll", "ll128"};

Duration microseconds_rounded_up(double us) { return seconds_rounded_up(us * 1e-6); }

double as_double(int64_t n) { return static_cast<double>(n); }

// Bytes that must leave (and enter) each member's NIC, or its NVLink port for a group inside a
// node: the conservation law of each kind, shared evenly by the members of a node.
//   all-gather, reduce-scatter: all but its own part passes each node boundary: S (R - 1) / R over
//   p NICs all-reduce: the same, out for the reduction and back for the result; 2 S (N - 1) / N for
//   trees of N nodes nvls: a port sends its vector to be reduced and receives the result, S (R + 1)
//   / R
int64_t port_bytes(CollectiveKind kind, int64_t s, const GroupShape& g, Algorithm algorithm) {
  const int64_t r = g.ranks, p = g.ranks_per_node();
  const auto share = [](Int128 numerator, Int128 denominator) {
    return static_cast<int64_t>((numerator + denominator - 1) / denominator);
  };
  switch (kind) {
    case CollectiveKind::kAllReduce:
      if (algorithm == Algorithm::kNvls) return share(Int128{s} * (r + 1), r);
      if (algorithm == Algorithm::kNvlsTree || (algorithm == Algorithm::kTree && g.nodes > 1)) {
        return share(Int128{2} * s * (g.nodes - 1), Int128{g.nodes} * p);
      }
      return share(Int128{2} * s * (r - 1), Int128{r} * (g.nodes > 1 ? p : 1));
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return share(Int128{s} * (r - 1), Int128{r} * (g.nodes > 1 ? p : 1));
    case CollectiveKind::kAllToAll:
      return share(Int128{s} * (g.nodes > 1 ? r - p : r - 1), r);
    case CollectiveKind::kBroadcast:
      return g.nodes > 1 ? share(s, p) : s;
    case CollectiveKind::kSendRecv:
      return s;
  }
  return s;
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
  const int64_t passes = kind == CollectiveKind::kAllReduce ? 2 : 1;
  switch (algorithm) {
    case Algorithm::kPairwise:
      return {kind == CollectiveKind::kAllToAll ? t.all_to_all : t.send_recv};
    case Algorithm::kPat:
      return {t.pat};
    case Algorithm::kRing:
      if (ring_bus_bandwidth(g, t) < t.ring_bandwidth) return {t.nic_ring, passes * (g.nodes - 1)};
      return {t.ring, passes * (g.ranks - 1)};
    case Algorithm::kTree:
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree:
    case Algorithm::kCollNet:
      break;
  }
  return g.nodes == 2 ? AppliedCorrection{t.tree_two_nodes}
                      : AppliedCorrection{t.tree, tree_levels(g)};
}

struct Cost {
  double latency_us = 0;
  double bandwidth = 0;  // GB/s of the message
};

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

bool measured(const CollectiveCorrection& c, Bytes bytes, const GroupShape& g) {
  return bytes >= c.least && bytes <= c.most && g.ranks <= c.most_ranks;
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
  CollectivePlan plan;
  if (g.ranks <= 1 || bytes <= Bytes()) return plan;
  Cost cost;
  if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv) {
    plan.algorithm = Algorithm::kPairwise;
    cost = pairwise_cost(kind, g, t);
    plan.channels = g.nodes == 1 ? t.p2p_node_channels : t.p2p_network_channels;
  } else {
    const NcclChoice choice = nccl_choice(kind, bytes, g, t);
    plan.algorithm = choice.best.algorithm;
    plan.protocol = choice.best.protocol;
    cost = {.latency_us = choice.least_latency_us, .bandwidth = choice.wire_bandwidth};
    const bool nvls = plan.algorithm == Algorithm::kNvls || plan.algorithm == Algorithm::kNvlsTree;
    plan.channels =
        nvls ? t.nvls_blocks : used_channels(bytes, g, plan.protocol, ring_channels(g, t));
  }
  const auto [correction, stages] = correction_for(kind, g, t, plan.algorithm);
  plan.latency =
      microseconds_rounded_up(cost.latency_us * correction.latency_factor +
                              as_double(stages) * correction.fill_microseconds.at(bytes));
  plan.volume = Bytes(port_bytes(kind, bytes.count(), g, plan.algorithm));
  const double seconds =
      as_double(bytes.count()) / (cost.bandwidth * 1e9 * correction.efficiency.at(bytes));
  plan.rate_cap = std::max(Bandwidth::from_bytes_per_second(1),
                           bytes_per_second(as_double(plan.volume.count()) / seconds));
  plan.nic_crossings = g.nodes > 1 ? 1 : 0;
  plan.nvlink_crossings = nvlink_crossings(kind, g, plan.algorithm);
  plan.extrapolated = !measured(correction, bytes, g);
  return plan;
}

}  // namespace herdsim

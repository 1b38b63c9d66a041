#include "sim/collectives/collective_phases.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

using Phases = std::vector<CollectivePhase>;

constexpr CollectiveKind kAllReduce = CollectiveKind::kAllReduce;
constexpr CollectiveKind kAllGather = CollectiveKind::kAllGather;
constexpr CollectiveKind kReduceScatter = CollectiveKind::kReduceScatter;
constexpr CollectiveKind kAllToAll = CollectiveKind::kAllToAll;
constexpr CollectiveKind kBroadcast = CollectiveKind::kBroadcast;

template <Algorithm kAlgorithm, CollectiveKind... kKinds>
Phases whole(CollectiveKind kind) {
  if (((kind != kKinds) && ...)) return {};
  return {{.kind = kind, .algorithm = kAlgorithm}};
}

Phases as_nccl_chooses(CollectiveKind kind) { return {{.kind = kind}}; }

Phases hierarchical(CollectiveKind kind) {
  const CollectivePhase in_node{.kind = kind, .part = GroupPart::kNode};
  const CollectivePhase over_rails{.kind = kind, .part = GroupPart::kRail};
  switch (kind) {
    case kAllReduce:
      return {{.kind = kReduceScatter, .part = GroupPart::kNode},
              over_rails,
              {.kind = kAllGather, .part = GroupPart::kNode}};
    case kReduceScatter:
    case kAllToAll:
      return {in_node, over_rails};
    case kAllGather:
      return {over_rails, in_node};
    case kBroadcast:
    case CollectiveKind::kSendRecv:
      break;
  }
  return {};
}

// What a member has along one of the two ways through the group: in its host, and along its rail.
struct Way {
  std::string_view name;
  bool reduced = false, scattered = false;
  bool passed = false;  // an all-to-all or a broadcast has run along it
};

std::string name_of(CollectiveKind kind, std::string_view way) {
  const std::string_view phase = collective_kind_name(kind);
  return (phase.front() == 'a' ? "an " : "a ") + std::string(phase) + " " + std::string(way);
}

// Follows phases, and says what the first one that makes no sense is wrong about.
class Follower {
 public:
  explicit Follower(CollectiveKind kind) : kind_(kind) {
    // An all-gather starts from what a reduce-scatter ends with.
    for (Way& way : ways_) way.reduced = way.scattered = kind == kAllGather;
  }

  PlacedPhase placed(const CollectivePhase& phase) const {
    const bool node = phase.part == GroupPart::kNode, rail = phase.part == GroupPart::kRail;
    return {phase, rail && ways_[0].scattered, node && ways_[1].scattered};
  }
  std::string take(const CollectivePhase& phase) {
    for (Way& way : ways_) {
      if (phase.part == GroupPart::kNode && &way != &ways_[0]) continue;
      if (phase.part == GroupPart::kRail && &way != &ways_[1]) continue;
      if (std::string fault = take(phase.kind, way); !fault.empty()) return fault;
    }
    return "";
  }
  std::string missing() const {
    for (const Way& way : ways_) {
      const bool passes = kind_ == kAllToAll || kind_ == kBroadcast;
      if (passes ? !way.passed : !way.reduced) return "nothing is done " + std::string(way.name);
      if (passes) continue;
      if (way.scattered && kind_ != kReduceScatter)
        return "what is scattered " + std::string(way.name) + " is never gathered";
      if (!way.scattered && kind_ == kReduceScatter)
        return "nothing is scattered " + std::string(way.name);
    }
    return "";
  }

 private:
  std::string take(CollectiveKind phase, Way& way) const {
    if (phase == CollectiveKind::kSendRecv) return "a send-recv is of two ranks alone";
    if (phase == kAllToAll || phase == kBroadcast) {
      if (phase != kind_) return name_of(phase, way.name) + " is no part of it";
      if (way.passed) return name_of(phase, way.name) + " comes twice";
      way.passed = true;
      return "";
    }
    if (kind_ == kAllToAll || kind_ == kBroadcast)
      return name_of(phase, way.name) + " is no part of it";
    if (phase == kAllGather) {
      if (!way.scattered) return name_of(phase, way.name) + " finds nothing that is scattered";
      way.scattered = false;
      return "";
    }
    if (way.reduced) return name_of(phase, way.name) + " adds up what is added up";
    way.reduced = true;
    way.scattered = phase == kReduceScatter;
    return "";
  }

  CollectiveKind kind_;
  std::array<Way, 2> ways_ = {Way{.name = "in each host"}, Way{.name = "along rails"}};
};

// Of the port that limits a plan, its rate of the plan's transfer.
Bandwidth port_bound(const CollectivePlan& plan, const NcclTuning& t) {
  const auto share = [](double gigabytes, int64_t crossings) {
    return bytes_per_second(gigabytes * 1e9) / crossings;
  };
  Bandwidth bound = Bandwidth::unlimited();
  if (plan.nvlink_crossings > 0) bound = share(t.nvlink_port, plan.nvlink_crossings);
  if (plan.nic_crossings > 0) bound = std::min(bound, share(t.nic_port, plan.nic_crossings));
  return bound;
}

}  // namespace

const std::vector<CollectiveAlgorithm>& collective_algorithms() {
  static const std::vector<CollectiveAlgorithm> rows = {
      {"nccl", "Whichever NCCL predicts to be the fastest for the kind, group and size.",
       &as_nccl_chooses},
      {"ring",
       "All but all-to-all: one ring a channel through hosts and GPUs in rank order, R - 1 steps, "
       "of an all-reduce 2 (R - 1).",
       &whole<Algorithm::kRing, kAllReduce, kAllGather, kReduceScatter, kBroadcast>},
      {"tree", "All-reduce: up a double binary tree of hosts and down again, a chain in each host.",
       &whole<Algorithm::kTree, kAllReduce>},
      {"nvls", "All-reduce in one host of more than two GPUs: the NVSwitch adds up.",
       &whole<Algorithm::kNvls, kAllReduce>},
      {"nvlstree",
       "All-reduce across hosts of more than two GPUs each: NVLS in each host, a tree between "
       "them.",
       &whole<Algorithm::kNvlsTree, kAllReduce>},
      {"collnet", "All-reduce: network switches add up (cluster.in_network_reduction).",
       &whole<Algorithm::kCollNet, kAllReduce>},
      {"pat",
       "All-gather and reduce-scatter with one rank a host, from NCCL 2.23: parallel aggregated "
       "trees.",
       &whole<Algorithm::kPat, kAllGather, kReduceScatter>},
      {"pairwise", "All-to-all: every member sends to each other.",
       &whole<Algorithm::kPairwise, kAllToAll>},
      {"hierarchical",
       "By host and by rail: all-reduce as reduce-scatter in each host, all-reduce along each "
       "rail, all-gather in each "
       "host (Jia et al., arXiv:1807.11205); all-to-all in two dimensions (Hwang et al., "
       "arXiv:2206.03382); the others in "
       "two phases (Cho et al., BlueConnect, MLSys 2019).",
       &hierarchical},
  };
  return rows;
}

const CollectiveAlgorithm* find_collective_algorithm(std::string_view name) {
  for (const CollectiveAlgorithm& row : collective_algorithms()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string phases_fault(CollectiveKind kind, std::span<const CollectivePhase> phases) {
  Follower follower(kind);
  for (const CollectivePhase& phase : phases) {
    if (std::string fault = follower.take(phase); !fault.empty()) return fault;
  }
  return follower.missing();
}

std::vector<PlacedPhase> placed_phases(CollectiveKind kind,
                                       std::span<const CollectivePhase> phases) {
  Follower follower(kind);
  std::vector<PlacedPhase> placed;
  for (const CollectivePhase& phase : phases) {
    placed.push_back(follower.placed(phase));
    const std::string fault = follower.take(phase);
    HERDSIM_CHECK(fault.empty()) << fault;
  }
  return placed;
}

GroupShape part_of(const GroupShape& group, GroupPart part) {
  switch (part) {
    case GroupPart::kAll:
      break;
    case GroupPart::kNode:
      return {.ranks = group.ranks_per_node()};
    case GroupPart::kRail: {
      GroupShape rail = group;
      rail.ranks = group.nodes;
      return rail;
    }
  }
  return group;
}

Bytes bytes_of_phase(Bytes whole, const GroupShape& group, const PlacedPhase& placed) {
  if (placed.scattered_in_node) return whole / group.ranks_per_node();
  if (placed.scattered_over_rails) return whole / group.nodes;
  return whole;
}

CollectivePlan plan_phase(Bytes whole, const GroupShape& group, const PlacedPhase& placed,
                          const NcclTuning& tuning) {
  const CollectivePhase& phase = placed.phase;
  const GroupShape part = part_of(group, phase.part);
  const Bytes bytes = bytes_of_phase(whole, group, placed);
  CollectivePlan plan = phase.algorithm
                            ? plan_collective(phase.kind, bytes, part, tuning, *phase.algorithm)
                            : plan_collective(phase.kind, bytes, part, tuning);
  if (plan.volume == Bytes()) return plan;
  plan.part = phase.part;
  if (phase.efficiency > 0) {
    plan.rate_cap = port_bound(plan, tuning) * Ratio(phase.efficiency);
    plan.extrapolated = false;
  }
  if (phase.channels > 0) {
    if (phase.channels < plan.channels)
      plan.rate_cap = plan.rate_cap * phase.channels / plan.channels;
    plan.channels = phase.channels;
  }
  plan.rate_cap = std::max(plan.rate_cap, Bandwidth::from_bytes_per_second(1));
  return plan;
}

}  // namespace herdsim

#include "tools/study/transfer_bounds.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/collectives/group_path.h"
#include "sim/opgraph/collective_rules.h"
#include "tools/simulation/job_on_machine.h"
#include "tools/simulation/network_tuning.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

using Ticks = int64_t;  // nanoseconds

void add(const GroupShape& shape, TransferBounds::Shapes& shapes) {
  if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
}

template <class InShape>
LeastTransfer least_in(const TransferBounds::Shapes& shapes, InShape in_shape) {
  if (shapes.empty()) return {};
  LeastTransfer least = in_shape(shapes.front());
  for (const GroupShape& shape : shapes) {
    const LeastTransfer here = in_shape(shape);
    least = {std::min(least.time, here.time), std::min(least.taken, here.taken)};
  }
  return least;
}

Ticks time_alone(const CollectivePlan& plan, const ClusterSpec& cluster) {
  auto rate = static_cast<double>(plan.rate_cap.bytes_per_second());
  if (plan.nic_crossings > 0) {
    rate = std::min(rate, static_cast<double>(cluster.nic.bytes_per_second()) *
                              cluster.nic_efficiency / static_cast<double>(plan.nic_crossings));
  }
  if (plan.nvlink_crossings > 0) {
    rate = std::min(rate, static_cast<double>(cluster.nvlink.bytes_per_second()) /
                              static_cast<double>(plan.nvlink_crossings));
  }
  const double moving = rate > 0 ? static_cast<double>(plan.volume.count()) / rate * 1e9 : 0;
  return plan.latency.nanoseconds() + static_cast<Ticks>(moving);
}

// What a transfer that holds so many SMs takes from kernels beside it (Multiprocessors). A kernel
// keeps one SM whatever all of a GPU's streams hold; so that what each takes may be summed, none
// counts with more than its part of the others.
Ticks taken_in(Ticks time, int64_t channels, const DeviceProfile& profile) {
  constexpr double kStreamsBesideKernels = kStreams - 2;  // but compute and the host
  constexpr double kRounding = 0.999;  // the executor counts parts of SMs and whole nanoseconds
  const auto sms = static_cast<double>(profile.sms);
  const double lost = static_cast<double>(channels) * profile.sms_lost_per_transfer_sm;
  const double share = std::min(lost, (sms - 1) / kStreamsBesideKernels) / sms;
  return static_cast<Ticks>(static_cast<double>(time) * share * kRounding);
}

}  // namespace

TransferBounds::TransferBounds(const Scenario& base)
    : base_(base),
      fabric_(find_topology(base.cluster.topology)->build(base.cluster)),
      placement_(placement_of(base)),
      tuning_(network_tuning(base, fabric_, placement_)) {}

const TransferBounds::Shapes& TransferBounds::of_groups(const RankGrid& grid,
                                                        Communicator communicator) {
  const auto size_of = [&](Axis axis) { return grid.size(axis); };
  const bool nested = base_.plan.order == ParallelPlan{}.order;
  const bool inner = nested && communicator == Communicator::kTensor;
  const bool middle = nested && communicator == Communicator::kContext;
  const std::tuple key(communicator, size_of(Axis::kTp), inner ? size_t{0} : size_of(Axis::kCp),
                       inner || middle ? size_t{0} : size_of(Axis::kPp),
                       grid.group_size(communicator));
  const auto [at, is_new] = groups_.try_emplace(key);
  if (is_new) at->second = groups(grid, communicator);
  return at->second;
}

TransferBounds::Shapes TransferBounds::groups(const RankGrid& grid,
                                              Communicator communicator) const {
  Shapes shapes;
  const size_t size = grid.group_size(communicator);
  std::vector<GpuId> members(size);
  for (size_t g = 0; size > 1 && g < grid.group_count(communicator); ++g) {
    for (size_t i = 0; i < size; ++i) {
      members[i] = placement_[grid.member(CommGroupId(g), communicator, i)];
    }
    add(group_shape(fabric_, members), shapes);
  }
  return shapes;
}

const TransferBounds::Shapes& TransferBounds::of_pairs(int64_t ranks_apart) {
  const auto [at, is_new] = pairs_.try_emplace(ranks_apart);
  if (is_new) at->second = pairs(ranks_apart);
  return at->second;
}

TransferBounds::Shapes TransferBounds::pairs(int64_t ranks_apart) const {
  Shapes shapes;
  // Pairs as far from each other, both ways, have one shape, but for those on a torus.
  std::array<std::array<bool, kHopClasses>, kHopClasses> is_known{};
  for (int64_t r = 0; r + ranks_apart < base_.gpus; ++r) {
    const std::array<GpuId, 2> pair = {placement_[RankId(static_cast<size_t>(r))],
                                       placement_[RankId(static_cast<size_t>(r + ranks_apart))]};
    if (!fabric_.torus()) {
      const auto there = static_cast<size_t>(fabric_.hop_class(pair[0], pair[1]));
      const auto back = static_cast<size_t>(fabric_.hop_class(pair[1], pair[0]));
      if (std::exchange(is_known[there][back], true)) continue;
    }
    add(group_shape(fabric_, pair), shapes);
  }
  return shapes;
}

LeastTransfer TransferBounds::alone(const CollectivePlan& plan) const {
  const Ticks time = time_alone(plan, base_.cluster);
  return {time, taken_in(time, plan.channels, base_.profile)};
}

// Phases follow each other: the sum of theirs.
LeastTransfer TransferBounds::collective(CollectiveKind kind, Bytes bytes,
                                         Communicator communicator, const Shapes& shapes,
                                         const TokenRouting& routing) const {
  const CollectiveRule* rule = rule_about(base_.collectives, kind, communicator);
  std::vector<PlacedPhase> phases;
  if (rule != nullptr && bytes > Bytes()) phases = placed_phases(kind, rule->phases);
  return least_in(shapes, [&](const GroupShape& shape) {
    const Bytes moved = once_a_place(bytes, routing, shape);
    LeastTransfer sum;
    for (const PlacedPhase& phase : phases)
      sum = sum + alone(plan_phase(moved, shape, phase, tuning_));
    return phases.empty() ? alone(plan_collective(kind, moved, shape, tuning_)) : sum;
  });
}

LeastTransfer TransferBounds::message(Bytes bytes, const Shapes& shapes) const {
  return least_in(shapes, [&](const GroupShape& shape) {
    return alone(plan_collective(CollectiveKind::kSendRecv, bytes, shape, tuning_));
  });
}

}  // namespace herdsim

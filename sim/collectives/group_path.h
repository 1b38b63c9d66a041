// Where a group lies on the machine, and which links its collectives load.
//
// NCCL's rings pass the hosts of a group in rank order and stay on one rail: local GPU i of a host
// sends to local GPU i of the next. So a group's shape is its ring of hosts, and its path is the
// union of those edges.
//
//   const GroupShape shape = group_shape(fabric, members);
//   const CollectivePlan plan = plan_collective(CollectiveKind::kAllGather, bytes, shape, tuning);
//   append_group_path(fabric, members, plan, crossings);
#pragma once

#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/collectives/collective.h"
#include "sim/fabric/crossing.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/lane_spread.h"

namespace herdsim {

// Requires: members differ. Hosts count in the order of their first member.
// Complexity: linear, and n log n where members of one host are apart in the order.
GroupShape group_shape(const Fabric& fabric, std::span<const GpuId> members);

// Appends the links that bind the group's transfers (Fabric::can_bind), ascending, each once: a
// member's NIC and NVLink port as often as the plan says, links above as often as the ring passes
// them. For the pairwise exchange of an all-to-all a link above counts the share of traffic that
// leaves the part of the group below it. Trees are booked as rings, which they exceed near the root
// and undercut near the leaves.
void append_group_path(const Fabric& fabric, std::span<const GpuId> members,
                       const CollectivePlan& plan, std::vector<Crossing>& out);

// Appends the pairs of GPUs under different ToRs that a collective of the group connects, and says
// how many of them share a NIC at a time: a ring's edges, one a NIC; of an exchange of all pairs the
// next eight partners of each GPU beyond its host, which is what NCCL has in flight together.
int64_t append_connections(const Fabric& fabric, std::span<const GpuId> members,
                           const CollectivePlan& plan, std::vector<Connection>& out);

// The links of one transfer between two GPUs. Requires: a != b.
void append_point_to_point_path(const Fabric& fabric, GpuId a, GpuId b, std::vector<Crossing>& out);

}  // namespace herdsim

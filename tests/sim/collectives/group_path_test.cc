#include "sim/collectives/group_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/fabric/fabric_builder.h"

namespace herdsim {
namespace {

// 4 GPUs a host, 2 hosts a ToR, 2 ToRs a pod, 3 pods; uplinks narrow enough to bind, PCIe too if
// asked.
Fabric cluster(bool rails, bool narrow_pcie = false) {
  constexpr size_t kPerHost = 4, kHosts = 12, kGpus = kPerHost * kHosts;
  const Bandwidth nic = gigabits_per_second(400);
  FabricBuilder builder(
      {.gpus = kGpus, .gpus_per_host = kPerHost, .nvlink = gigabytes_per_second(450)});
  std::vector<NodeId> nics, tors, pods;
  for (size_t i = 0; i < kGpus; ++i) nics.push_back(builder.add(NodeKind::kNic));
  for (size_t i = 0; i < 24; ++i) tors.push_back(builder.add(NodeKind::kTor));
  for (size_t i = 0; i < 3; ++i) pods.push_back(builder.add(NodeKind::kPod));
  const NodeId core = builder.add(NodeKind::kCore);
  for (size_t i = 0; i < kGpus; ++i) {
    builder.connect(NodeId(i), nics[i],
                    narrow_pcie ? gigabytes_per_second(40) : gigabytes_per_second(64));
    // With rails a group of two hosts has four ToRs; without, all its NICs are on the first of
    // them.
    const size_t group = i / (2 * kPerHost);
    builder.connect(nics[i], tors[group * 4 + (rails ? i % kPerHost : 0)], nic);
  }
  for (size_t i = 0; i < tors.size(); ++i) builder.connect(tors[i], pods[i / 8], nic);
  for (const NodeId pod : pods) builder.connect(pod, core, nic);
  return std::move(builder).build();
}

std::vector<GpuId> gpus(std::initializer_list<size_t> indices) {
  std::vector<GpuId> all;
  for (const size_t i : indices) all.push_back(GpuId(i));
  return all;
}

// The plain twin: a route for every member to its partner on the next host, by lookup in maps.
std::vector<Crossing> plain_ring_path(const Fabric& fabric, const std::vector<GpuId>& members,
                                      const CollectivePlan& plan) {
  std::vector<HostId> hosts;
  std::map<size_t, std::vector<GpuId>> on_host;
  for (const GpuId gpu : members) {
    const HostId host = fabric.host_of(gpu);
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
    on_host[host.index()].push_back(gpu);
  }
  std::map<LinkId, int64_t> count;
  for (const GpuId gpu : members) {
    count[fabric.nvlink_out(gpu)] += plan.nvlink_crossings;
    count[fabric.nvlink_in(gpu)] += plan.nvlink_crossings;
  }
  if (plan.nic_crossings > 0) {
    for (size_t h = 0; h < hosts.size(); ++h) {
      const auto& from = on_host[hosts[h].index()];
      const auto& to = on_host[hosts[(h + 1) % hosts.size()].index()];
      for (size_t i = 0; i < from.size(); ++i) {
        GpuId partner = to[i % to.size()];
        if (partner.index() % 4 != from[i].index() % 4) {
          for (const GpuId gpu : to) {
            if (gpu.index() % 4 == from[i].index() % 4) partner = gpu;
          }
        }
        std::vector<LinkId> route;
        fabric.append_route(from[i], partner, route);
        for (const LinkId link : route) count[link] += plan.nic_crossings;
      }
    }
  }
  std::vector<Crossing> path;
  for (const auto& [link, n] : count) {
    if (n > 0 && fabric.can_bind(link)) path.push_back({.link = link, .count = n});
  }
  return path;
}

TEST(GroupPath, is_the_union_of_the_rings_routes) {
  const CollectivePlan between{.nic_crossings = 1, .nvlink_crossings = 3};
  const CollectivePlan inside{.nic_crossings = 0, .nvlink_crossings = 1};
  for (const bool rails : {false, true}) {
    for (const bool narrow_pcie : {false, true}) {
      const Fabric fabric = cluster(rails, narrow_pcie);
      uint64_t draw = 1;
      for (int trial = 0; trial < 200; ++trial) {
        // The same ranks on each of a few hosts in random order: the shape of every communicator of
        // a plan.
        std::vector<size_t> hosts(12);
        for (size_t i = 0; i < 12; ++i) hosts[i] = i;
        for (size_t i = 12; i > 1; --i) std::swap(hosts[i - 1], hosts[(draw = mix64(draw)) % i]);
        const size_t count = 1 + (draw = mix64(draw)) % 12;
        const size_t per_host = 1 + (draw = mix64(draw)) % 4;
        std::vector<GpuId> members;
        for (size_t h = 0; h < count; ++h) {
          for (size_t i = 0; i < per_host; ++i) members.push_back(GpuId(hosts[h] * 4 + i));
        }
        const CollectivePlan& plan = count == 1 ? inside : between;
        std::vector<Crossing> path = {{.link = LinkId(999), .count = 7}};
        append_group_path(fabric, members, plan, path);
        EXPECT_EQ(path.front(), (Crossing{.link = LinkId(999), .count = 7}))
            << "what was there stays";
        path.erase(path.begin());
        EXPECT_EQ(path, plain_ring_path(fabric, members, plan)) << "trial " << trial;
      }
    }
  }
}

TEST(GroupPath, brings_members_of_a_host_together) {
  const Fabric fabric = cluster(false);
  const CollectivePlan plan{.nic_crossings = 1, .nvlink_crossings = 1};
  // Round robin over three hosts, and the same hosts one after another.
  const std::vector<GpuId> mixed = gpus({0, 8, 16, 1, 9, 17});
  const std::vector<GpuId> grouped = gpus({0, 1, 8, 9, 16, 17});
  EXPECT_EQ(group_shape(fabric, mixed), group_shape(fabric, grouped));
  std::vector<Crossing> mixed_path, grouped_path;
  append_group_path(fabric, mixed, plan, mixed_path);
  append_group_path(fabric, grouped, plan, grouped_path);
  EXPECT_EQ(mixed_path, grouped_path);
}

TEST(GroupShape, counts_the_hop_classes_of_the_host_ring) {
  const Fabric fabric = cluster(false);
  const GroupShape inside = group_shape(fabric, gpus({4, 5, 6, 7}));
  EXPECT_EQ(inside, (GroupShape{.ranks = 4, .nodes = 1}));
  // Hosts 0, 1 (one ToR), 2 (same pod), 4 (next pod), and back.
  const GroupShape ring = group_shape(fabric, gpus({0, 1, 4, 5, 8, 9, 16, 17}));
  EXPECT_EQ(ring.ranks, 8);
  EXPECT_EQ(ring.nodes, 4);
  EXPECT_EQ(ring.ranks_per_node(), 2);
  EXPECT_EQ(ring.farthest, HopClass::kCrossPod);
  EXPECT_EQ(ring.edges, (std::array<int64_t, kHopClasses>{0, 0, 1, 1, 2}));
  // On rails the same hosts meet under the ToR of their rail, whichever rail that is.
  EXPECT_EQ(group_shape(cluster(true), gpus({1, 5})).farthest, HopClass::kSameTor);
}

// A member's traffic is spread evenly over the partners beyond its host.
TEST(GroupPath, counts_an_exchange_by_the_share_that_leaves) {
  const Fabric fabric = cluster(false);
  const CollectivePlan plan{.algorithm = Algorithm::kPairwise, .nic_crossings = 1};
  std::vector<GpuId> members;
  for (size_t i = 0; i < 48; ++i) members.push_back(GpuId(i));
  std::vector<Crossing> path;
  append_group_path(fabric, members, plan, path);
  std::map<LinkKind, std::pair<int64_t, int64_t>> links;  // number, count
  for (const auto& [link, count] : path) {
    auto& [number, each] = links[fabric.links()[link].kind];
    ++number;
    each = count;
  }
  EXPECT_EQ(links[LinkKind::kNicToTor], std::pair(int64_t{96}, int64_t{1}));
  // Both directions of 6 ToRs in use: 8 members, 40 of 44 partners beyond: 7.27. Of 3 pods: 16 * 32
  // / 44 = 11.6.
  EXPECT_EQ(links[LinkKind::kTorToPod], std::pair(int64_t{12}, int64_t{8}));
  EXPECT_EQ(links[LinkKind::kPodToCore], std::pair(int64_t{6}, int64_t{12}));
}

TEST(PointToPointPath, is_the_part_of_the_route_that_binds) {
  for (const bool narrow_pcie : {false, true}) {
    const Fabric fabric = cluster(true, narrow_pcie);
    for (size_t a = 0; a < fabric.gpus(); ++a) {
      for (size_t b = 0; b < fabric.gpus(); ++b) {
        if (a == b) continue;
        std::vector<LinkId> route;
        fabric.append_route(GpuId(a), GpuId(b), route);
        std::vector<Crossing> expected, path;
        for (const LinkId link : route) {
          if (fabric.can_bind(link)) expected.push_back({.link = link, .count = 1});
        }
        std::sort(expected.begin(), expected.end());
        append_point_to_point_path(fabric, GpuId(a), GpuId(b), path);
        ASSERT_EQ(path, expected) << a << " to " << b;
      }
    }
  }
}

}  // namespace
}  // namespace herdsim

#include "sim/fabric/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/fabric/fabric_builder.h"
#include "sim/fabric/graph_algorithms.h"

namespace herdsim {
namespace {

constexpr Bandwidth kNic = gigabits_per_second(400);

struct TreeShape {
  size_t hosts_per_tor = 2, tors_per_pod = 2, pods = 2;
  size_t gpus_per_host = 2;
  Bandwidth pcie = gigabytes_per_second(64);
  size_t tor_lanes = 4;
  size_t pod_lanes = 2;
};

Fabric tree(const TreeShape& s) {
  const size_t gpus_per_tor = s.hosts_per_tor * s.gpus_per_host;
  const size_t tors = s.tors_per_pod * s.pods;
  FabricBuilder builder({.gpus = gpus_per_tor * tors,
                         .gpus_per_host = s.gpus_per_host,
                         .nvlink = gigabytes_per_second(450)});
  std::vector<NodeId> nics, tor_nodes, pods;
  for (size_t i = 0; i < gpus_per_tor * tors; ++i) nics.push_back(builder.add(NodeKind::kNic));
  for (size_t i = 0; i < tors; ++i) tor_nodes.push_back(builder.add(NodeKind::kTor));
  for (size_t i = 0; i < s.pods; ++i) pods.push_back(builder.add(NodeKind::kPod));
  const NodeId core = builder.add(NodeKind::kCore, 3);
  for (size_t i = 0; i < nics.size(); ++i) {
    builder.connect(NodeId(i), nics[i], s.pcie);
    builder.connect(nics[i], tor_nodes[i / gpus_per_tor], kNic);
  }
  for (size_t i = 0; i < tors; ++i) {
    builder.connect(tor_nodes[i], pods[i / s.tors_per_pod], kNic, s.tor_lanes);
  }
  for (const NodeId pod : pods) builder.connect(pod, core, kNic, s.pod_lanes);
  return std::move(builder).build();
}

TEST(Fabric, every_route_joins_its_ends_and_never_visits_a_node_twice) {
  const Fabric fabric = tree({});
  for (size_t a = 0; a < fabric.gpus(); ++a) {
    for (size_t b = 0; b < fabric.gpus(); ++b) {
      if (a == b) continue;
      std::vector<LinkId> route;
      fabric.append_route(GpuId(a), GpuId(b), route);
      ASSERT_FALSE(route.empty());
      std::vector<NodeId> visited = {fabric.node_of(GpuId(a))};
      for (const LinkId link : route) {
        EXPECT_EQ(fabric.links()[link].from, visited.back());
        visited.push_back(fabric.links()[link].to);
      }
      EXPECT_EQ(visited.back(), fabric.node_of(GpuId(b)));
      std::sort(visited.begin(), visited.end());
      EXPECT_EQ(std::adjacent_find(visited.begin(), visited.end()), visited.end());
    }
  }
}

TEST(Fabric, hop_class_says_how_far_a_route_climbs) {
  const Fabric fabric = tree({});
  // Links on a route by class: NVLink out and in; then PCIe and NIC at both ends, and one more
  // layer each.
  const std::vector<size_t> links = {0, 2, 4, 6, 8};
  std::vector<size_t> seen(kHopClasses);
  for (size_t a = 0; a < fabric.gpus(); ++a) {
    for (size_t b = 0; b < fabric.gpus(); ++b) {
      const HopClass hop = fabric.hop_class(GpuId(a), GpuId(b));
      EXPECT_EQ(hop, fabric.hop_class(GpuId(b), GpuId(a)));
      ++seen[static_cast<size_t>(hop)];
      if (a == b) {
        EXPECT_EQ(hop, HopClass::kSameGpu);
        continue;
      }
      std::vector<LinkId> route;
      fabric.append_route(GpuId(a), GpuId(b), route);
      EXPECT_EQ(route.size(), links[static_cast<size_t>(hop)]) << hop_class_name(hop);
    }
  }
  // 16 GPUs: itself, 1 of its host, 2 under its ToR, 4 in its pod, 8 beyond.
  EXPECT_EQ(seen, (std::vector<size_t>{16, 16, 32, 64, 128}));
}

TEST(Fabric, every_link_has_its_opposite_of_equal_capacity) {
  const Fabric fabric = tree({});
  for (size_t i = 0; i < fabric.links().size(); ++i) {
    const Link& link = fabric.links()[LinkId(i)];
    const Link& other = fabric.links()[LinkId(i ^ 1)];
    EXPECT_EQ(link.from, other.to);
    EXPECT_EQ(link.to, other.from);
    EXPECT_EQ(link.capacity, other.capacity);
    EXPECT_EQ(link.kind, other.kind);
  }
}

TEST(Fabric, nvlink_ports_join_the_gpus_of_one_host_to_one_switch) {
  const Fabric fabric = tree({});
  for (size_t a = 0; a < fabric.gpus(); ++a) {
    EXPECT_EQ(fabric.links()[fabric.nvlink_out(GpuId(a))].from, NodeId(a));
    EXPECT_EQ(fabric.links()[fabric.nvlink_in(GpuId(a))].to, NodeId(a));
    for (size_t b = 0; b < fabric.gpus(); ++b) {
      const bool one_switch = fabric.links()[fabric.nvlink_out(GpuId(a))].to ==
                              fabric.links()[fabric.nvlink_in(GpuId(b))].from;
      EXPECT_EQ(one_switch, fabric.host_of(GpuId(a)) == fabric.host_of(GpuId(b)));
    }
  }
}

TEST(FabricCanBind, an_uplink_binds_only_if_narrower_than_all_that_comes_from_below) {
  for (const size_t tor_lanes : {2, 3, 4, 5, 8}) {
    for (const size_t pod_lanes : {1, 4, 5, 6, 8, 9}) {
      const Fabric fabric = tree({.tor_lanes = tor_lanes, .pod_lanes = pod_lanes});
      const size_t below_tor = 4;
      const size_t below_pod = 2 * std::min(tor_lanes, below_tor);
      for (size_t i = 0; i < fabric.links().size(); ++i) {
        const LinkId id(i);
        bool expected = true;
        switch (fabric.links()[id].kind) {
          case LinkKind::kNvLink:
          case LinkKind::kNicToTor:
          case LinkKind::kSwitchToSwitch:
          case LinkKind::kGroupToGroup:
            break;
          case LinkKind::kPcie:
            expected = false;
            break;
          case LinkKind::kTorToPod:
            expected = tor_lanes < below_tor;
            break;
          case LinkKind::kPodToCore:
            expected = pod_lanes < below_pod;
            break;
          case LinkKind::kFrontendPort:
          case LinkKind::kFrontendUplink:
          case LinkKind::kStorageServer:
          case LinkKind::kDisks:
            ADD_FAILURE() << "this tree has no store";
            break;
        }
        EXPECT_EQ(fabric.can_bind(id), expected)
            << link_kind_name(fabric.links()[id].kind) << ' ' << tor_lanes << ' ' << pod_lanes;
      }
    }
  }
}

TEST(FabricCanBind, pcie_binds_only_if_narrower_than_the_nic) {
  for (const auto& [pcie, binds] :
       {std::pair(gigabytes_per_second(64), false), std::pair(gigabytes_per_second(50), false),
        std::pair(gigabytes_per_second(49), true)}) {
    const Fabric fabric = tree({.pcie = pcie});
    EXPECT_EQ(fabric.can_bind(fabric.nodes()[NodeId(0)].up), binds);
    EXPECT_TRUE(fabric.can_bind(fabric.nodes()[fabric.nic_of(GpuId(0))].up));
  }
}

// The links that can bind are enough: the largest flow out of any set of hosts under one node does
// not grow if all others are infinitely wide. Checked by max-flow between halves, which takes no
// notice of can_bind.
TEST(FabricCanBind, dropping_links_that_cannot_bind_leaves_the_bisection) {
  for (const size_t tor_lanes : {2, 4, 6}) {
    for (const size_t pod_lanes : {1, 3, 8, 9}) {
      const Fabric fabric = tree({.tor_lanes = tor_lanes, .pod_lanes = pod_lanes});
      std::vector<GpuId> left, right;
      for (size_t i = 0; i < fabric.gpus(); ++i) {
        (i < fabric.gpus() / 2 ? left : right).push_back(GpuId(i));
      }
      Bandwidth binding = kNic * static_cast<int64_t>(left.size());
      const NodeId tor = fabric.tor_of(GpuId(0));
      const NodeId pod = fabric.nodes()[tor].parent;
      const LinkId tor_up = fabric.nodes()[tor].up, pod_up = fabric.nodes()[pod].up;
      if (fabric.can_bind(tor_up)) binding = fabric.links()[tor_up].capacity * 2;
      if (fabric.can_bind(pod_up)) binding = fabric.links()[pod_up].capacity;
      EXPECT_EQ(max_flow_between(fabric, left, right), binding) << tor_lanes << ' ' << pod_lanes;
    }
  }
}

TEST(FabricBuilderDeath, rejects_what_is_not_one_tree) {
  const FabricBuilder::Gpus gpus{.gpus = 2, .gpus_per_host = 1, .nvlink = kNic};
  EXPECT_DEATH(FabricBuilder({.gpus = 3, .gpus_per_host = 2, .nvlink = kNic}), "3 GPUs in hosts");
  EXPECT_DEATH((void)FabricBuilder(gpus).build(), "connected to nothing");
  const auto with_tors = [&gpus](size_t tors) {
    FabricBuilder builder(gpus);
    std::vector<NodeId> nics = {builder.add(NodeKind::kNic), builder.add(NodeKind::kNic)};
    std::vector<NodeId> switches;
    for (size_t i = 0; i < tors; ++i) switches.push_back(builder.add(NodeKind::kTor));
    for (size_t i = 0; i < 2; ++i) {
      builder.connect(NodeId(i), nics[i], kNic);
      builder.connect(nics[i], switches[i % tors], kNic);
    }
    return builder;
  };
  EXPECT_EQ(with_tors(1).build().gpus(), 2U);
  EXPECT_DEATH((void)with_tors(2).build(), "2 network trees");
  FabricBuilder builder = with_tors(1);
  const NodeId pod = builder.add(NodeKind::kPod);
  EXPECT_DEATH(builder.connect(NodeId(0), pod, kNic), "already connected");
  const NodeId nic = builder.add(NodeKind::kNic);
  EXPECT_DEATH(builder.connect(pod, nic, kNic), "under");
}

}  // namespace
}  // namespace herdsim

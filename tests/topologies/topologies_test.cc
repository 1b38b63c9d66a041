// Every row of the registry: the built graph agrees with the closed forms, for clusters full and
// partly filled.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/fabric/graph_algorithms.h"
#include "topologies/cluster.h"
#include "topologies/link_capacity.h"

namespace herdsim {
namespace {

struct Size {
  int64_t gpus, gpus_per_host, gpus_per_tor, gpus_per_pod, tor_uplinks;
  double pod_oversubscription;
};

// Full pods, a partly filled last pod, a partly filled last rack, one pod, one rack, one host, an
// odd number of pods, many pods.
const std::vector<Size> kSizes = {
    {256, 4, 8, 64, 8, 2.0}, {208, 4, 8, 64, 8, 7.0},  {132, 4, 8, 64, 4, 2.0},
    {64, 4, 8, 64, 8, 1.0},  {48, 4, 8, 64, 16, 1.0},  {8, 4, 8, 64, 8, 7.0},
    {4, 4, 8, 64, 8, 7.0},   {192, 4, 8, 64, 6, 3.0},  {128, 2, 4, 32, 4, 1.0},
    {96, 8, 16, 128, 16, 1}, {512, 8, 16, 128, 16, 7}, {320, 4, 8, 64, 8, 2.0},
};

// As cubic as the number allows.
std::vector<int64_t> extents_of(int64_t chips) {
  std::vector<int64_t> best = {chips, 1, 1};
  for (int64_t x = 1; x * x * x <= chips; ++x) {
    for (int64_t y = x; x * y * y <= chips; ++y) {
      if (chips % (x * y) == 0 && chips / (x * y) <= best.front()) best = {chips / (x * y), y, x};
    }
  }
  return best;
}

// Leaves of as many GPUs as a ToR, two spines.
NetworkGraph leaves_and_spines(const ClusterSpec& spec) {
  NetworkGraph graph;
  graph.switches = {{"spine 0"}, {"spine 1", 2}};
  const int64_t hosts = spec.gpus / spec.gpus_per_host;
  const int64_t of_leaf = std::max<int64_t>(1, spec.gpus_per_tor / spec.gpus_per_host);
  for (int64_t first = 0; first < hosts; first += of_leaf) {
    const std::string leaf = "leaf " + std::to_string(first),
                      rack = "rack " + std::to_string(first);
    graph.switches.push_back({leaf});
    graph.hosts.push_back({rack, std::min(of_leaf, hosts - first)});
    graph.links.push_back({.from = rack, .to = leaf});
    graph.links.push_back({.from = "spine 0", .to = leaf, .lanes = (spec.tor_uplinks + 1) / 2});
    graph.links.push_back({.from = leaf, .to = "spine 1", .lanes = (spec.tor_uplinks + 3) / 4});
  }
  return graph;
}

ClusterSpec spec_of(const Topology& row, const Size& size) {
  ClusterSpec spec;
  spec.topology = row.name;
  spec.gpus = size.gpus;
  spec.gpus_per_host = size.gpus_per_host;
  spec.gpus_per_tor = size.gpus_per_tor;
  spec.gpus_per_pod = size.gpus_per_pod;
  spec.tor_uplinks = size.tor_uplinks;
  spec.pod_oversubscription = size.pod_oversubscription;
  spec.switch_ports = 2 * size.gpus_per_tor;  // fat-tree: as many GPUs a ToR
  if (row.name == "torus") spec.torus = extents_of(size.gpus);
  spec.local_lanes = 3;  // dragonfly: a router's cables to its group are no fewer than its NICs
  spec.global_lanes = 5;
  if (row.name == "graph") spec.network = leaves_and_spines(spec);
  return spec;
}

// Calls check(row, spec, fabric, facts) for every row and every size that the row can build.
template <class Check>
void for_every_row(const Check& check) {
  for (const Topology& row : topologies()) {
    int built = 0;
    for (const Size& size : kSizes) {
      const ClusterSpec spec = spec_of(row, size);
      Faults faults;
      append_cluster_faults(spec, "", faults);
      if (!faults.empty()) continue;
      ++built;
      SCOPED_TRACE(std::string(row.name) + " of " + std::to_string(spec.gpus) + " GPUs, " +
                   std::to_string(spec.gpus_per_tor) + " a ToR, " +
                   std::to_string(spec.gpus_per_pod) + " a pod");
      check(spec, row.build(spec), row.facts(spec));
    }
    EXPECT_GE(built, 6) << row.name << " is hardly tested";
  }
}

int64_t count_nodes(const Fabric& fabric, NodeKind kind) {
  int64_t count = 0;
  for (const Node& node : fabric.nodes()) count += node.kind == kind ? 1 : 0;
  return count;
}

int64_t count_devices(const Fabric& fabric, NodeKind kind) {
  int64_t count = 0;
  for (const Node& node : fabric.nodes()) count += node.kind == kind ? node.count : 0;
  return count;
}

int64_t count_lanes(const Fabric& fabric, LinkKind kind) {
  int64_t both_directions = 0;
  for (const Link& link : fabric.links()) both_directions += link.kind == kind ? link.width : 0;
  return both_directions / 2;
}

TEST(Topologies, counts_agree_with_the_closed_form) {
  for_every_row([](const ClusterSpec& spec, const Fabric& fabric, const TopologyFacts& facts) {
    EXPECT_EQ(static_cast<int64_t>(fabric.gpus()), spec.gpus);
    EXPECT_EQ(facts.gpus, spec.gpus);
    EXPECT_EQ(facts.hosts, spec.gpus / spec.gpus_per_host);
    // Chips of a torus share no NVLink.
    EXPECT_EQ(fabric.torus() ? spec.gpus : facts.hosts, static_cast<int64_t>(fabric.hosts()));
    EXPECT_EQ(fabric.torus() ? 0 : facts.hosts, count_nodes(fabric, NodeKind::kNvSwitch));
    EXPECT_EQ(facts.tors, count_devices(fabric, NodeKind::kTor));
    const bool is_mesh = fabric.mesh() != nullptr;
    EXPECT_EQ(is_mesh ? 0 : facts.pods, count_nodes(fabric, NodeKind::kPod));
    EXPECT_EQ(!is_mesh && facts.pods > 1 ? 1 : 0, count_nodes(fabric, NodeKind::kCore));
    EXPECT_EQ(facts.switch_links, count_lanes(fabric, LinkKind::kSwitchToSwitch));
    EXPECT_EQ(facts.group_links, count_lanes(fabric, LinkKind::kGroupToGroup));
    EXPECT_EQ(facts.nic_links, count_lanes(fabric, LinkKind::kNicToTor));
    EXPECT_EQ(facts.tor_uplinks, count_lanes(fabric, LinkKind::kTorToPod));
    EXPECT_EQ(facts.pod_uplinks, count_lanes(fabric, LinkKind::kPodToCore));
  });
}

TEST(Topologies, the_fullest_switch_has_as_many_cables_as_the_degree_says) {
  for_every_row([](const ClusterSpec&, const Fabric& fabric, const TopologyFacts& facts) {
    std::vector<int64_t> cables(fabric.nodes().size());
    for (const Link& link : fabric.links()) {
      if (link.kind != LinkKind::kNvLink && link.kind != LinkKind::kPcie) {
        cables[link.from.index()] += link.width;
      }
    }
    const NodeKind kind = fabric.torus() ? NodeKind::kNic : NodeKind::kTor;
    int64_t most = 0;
    for (size_t i = 0; i < cables.size(); ++i) {
      const Node& node = fabric.nodes()[NodeId(i)];
      if (node.kind == kind) most = std::max(most, (cables[i] + node.count - 1) / node.count);
    }
    EXPECT_EQ(facts.degree, most);
  });
}

// Every link begins where the one before ends, and no route is longer than the diameter.
TEST(Topologies, routes_join_every_pair_within_the_diameter) {
  for_every_row([](const ClusterSpec& spec, const Fabric& fabric, const TopologyFacts& facts) {
    int64_t longest = 0;
    for (int64_t a = 0; a < spec.gpus; a += 3) {
      for (int64_t b = 0; b < spec.gpus; b += 1 + a % 5) {
        const GpuId from(static_cast<size_t>(a)), to(static_cast<size_t>(b));
        if (fabric.host_of(from) == fabric.host_of(to)) continue;
        std::vector<LinkId> route;
        fabric.append_route(from, to, route);
        NodeId at = fabric.node_of(from);
        for (const LinkId link : route) {
          ASSERT_EQ(fabric.links()[link].from, at);
          at = fabric.links()[link].to;
        }
        ASSERT_EQ(at, fabric.node_of(to));
        longest = std::max(longest, static_cast<int64_t>(route.size()) - 2);  // without PCIe
      }
    }
    EXPECT_LE(longest, facts.diameter);
  });
}

TEST(Topologies, are_connected_and_as_far_across_as_the_closed_form_says) {
  for_every_row([](const ClusterSpec&, const Fabric& fabric, const TopologyFacts& facts) {
    EXPECT_EQ(network_components(fabric), 1);
    EXPECT_EQ(network_diameter(fabric), facts.diameter);
  });
}

// Max-flow between halves. Where one pod has several ToR groups the halves are groups; in one
// group, hosts.
TEST(Topologies, bisections_are_the_maximum_flow_between_halves) {
  for_every_row([](const ClusterSpec& spec, const Fabric& fabric, const TopologyFacts& facts) {
    if (fabric.mesh() != nullptr) return;
    const auto flow = [&fabric](int64_t first_half, int64_t end) {
      std::vector<GpuId> from, to;
      for (int64_t i = 0; i < end; ++i) {
        (i < first_half ? from : to).push_back(GpuId(static_cast<size_t>(i)));
      }
      return from.empty() ? Bandwidth() : max_flow_between(fabric, from, to);
    };
    const int64_t pod = std::min(spec.gpus, facts.gpus_per_pod);
    // GPUs whose NICs the ToRs of GPU 0's group serve.
    int64_t group = 1;
    while (group < pod && count_nodes(fabric, NodeKind::kTor) > 0) {
      const bool together = [&] {
        for (int64_t rail = 0; rail < spec.gpus_per_host; ++rail) {
          const GpuId gpu(static_cast<size_t>(group));
          if (fabric.tor_of(gpu) == fabric.tor_of(GpuId(static_cast<size_t>(rail)))) return true;
        }
        return false;
      }();
      if (!together) break;
      ++group;
    }
    const int64_t groups = (pod + group - 1) / group;
    const int64_t half =
        groups == 1 ? pod / spec.gpus_per_host / 2 * spec.gpus_per_host : groups / 2 * group;
    EXPECT_EQ(facts.pod_bisection, flow(half, pod));
    if (facts.pods == 1) {
      EXPECT_EQ(facts.cluster_bisection, facts.pod_bisection);
    } else {
      EXPECT_EQ(facts.cluster_bisection, flow(facts.pods / 2 * facts.gpus_per_pod, spec.gpus));
    }
  });
}

// Of the last pod half, of all groups half, of the longest dimension of a torus half, of hosts
// half.
Bandwidth flow_between_halves(const ClusterSpec& spec, const TopologyFacts& facts) {
  const Fabric fabric = find_topology(spec.topology)->build(spec);
  std::vector<GpuId> from, to;
  const int64_t groups = facts.pods > 1 ? facts.pods : spec.gpus / spec.gpus_per_host;
  for (int64_t gpu = 0; gpu < spec.gpus; ++gpu) {
    bool first = gpu < groups / 2 * (spec.gpus / groups);
    if (fabric.torus()) {
      const auto& n = fabric.torus()->extents;
      const auto longest = static_cast<size_t>(std::max_element(n.begin(), n.end()) - n.begin());
      first = fabric.torus()->at(gpu)[longest] < n[longest] / 2;
    }
    (first ? from : to).push_back(GpuId(static_cast<size_t>(gpu)));
  }
  return from.empty() ? Bandwidth() : max_flow_between(fabric, from, to);
}

TEST(Topologies, bisections_of_a_mesh_are_the_maximum_flow_between_halves) {
  int compared = 0;
  for_every_row([&](const ClusterSpec& spec, const Fabric& fabric, const TopologyFacts& facts) {
    if (fabric.mesh() == nullptr) return;
    ++compared;
    EXPECT_EQ(facts.cluster_bisection, flow_between_halves(spec, facts));
    ClusterSpec group = spec;
    if (facts.pods == 1) return;
    group.gpus = spec.gpus_per_pod;
    EXPECT_EQ(facts.pod_bisection,
              flow_between_halves(group, find_topology(spec.topology)->facts(group)));
    // What leads out of a group, against what is in it.
    int64_t outward = 0;
    for (const Link& link : fabric.links()) {
      if (link.kind == LinkKind::kGroupToGroup) outward += link.width;
    }
    EXPECT_DOUBLE_EQ(facts.oversubscription,
                     std::max(1.0, static_cast<double>(spec.gpus) / static_cast<double>(outward)));
  });
  EXPECT_GE(compared, 20);
}

TEST(Topologies, oversubscription_is_the_worst_ratio_of_any_switch) {
  for_every_row([](const ClusterSpec& spec, const Fabric& fabric, const TopologyFacts& facts) {
    if (fabric.mesh() != nullptr) return;
    // Line rate of the NICs below each node against its uplinks.
    std::vector<int64_t> nics(fabric.nodes().size());
    double worst = 1;
    for (size_t i = 0; i < fabric.nodes().size(); ++i) {
      const Node& node = fabric.nodes()[NodeId(i)];
      if (node.kind == NodeKind::kNic) nics[i] = 1;
      if (node.parent == NodeId(i) || node.kind == NodeKind::kGpu) continue;
      nics[node.parent.index()] += nics[i];
      const auto lanes = static_cast<double>(fabric.links()[node.up].width);
      if (node.kind != NodeKind::kNic)
        worst = std::max(worst, static_cast<double>(nics[i]) / lanes);
    }
    EXPECT_DOUBLE_EQ(facts.oversubscription, worst);
    if (spec.pod_oversubscription == 1 && facts.tor_uplinks >= facts.nic_links) {
      EXPECT_LE(facts.oversubscription, 1.0);
    }
  });
}

TEST(Topologies, names_are_unique_and_found) {
  for (const Topology& row : topologies()) {
    EXPECT_EQ(find_topology(row.name), &row);
    EXPECT_FALSE(row.help.empty());
  }
  EXPECT_EQ(find_topology("hypercube"), nullptr);
}

TEST(LinkCapacities, network_links_carry_the_efficiency_and_a_degraded_nic_less) {
  ClusterSpec spec = spec_of(*find_topology("clos3"), kSizes.front());
  spec.nic_efficiency = 0.9;
  spec.placement = PlacementKind::kRandomHosts;
  spec.degraded = {{.gpu = 5, .nic_factor = 0.5}};
  const Fabric fabric = find_topology("clos3")->build(spec);
  const auto placement = place_ranks(spec, spec.gpus, 7);
  const auto capacity = link_capacities(fabric, spec, placement);
  ASSERT_EQ(capacity.size(), fabric.links().size());
  const NodeId slow = fabric.nic_of(placement[RankId(5)]);
  int degraded = 0;
  for (size_t i = 0; i < capacity.size(); ++i) {
    const Link& link = fabric.links()[LinkId(i)];
    const bool host_link = link.kind == LinkKind::kNvLink || link.kind == LinkKind::kPcie;
    const bool is_slow = link.kind == LinkKind::kNicToTor && (link.from == slow || link.to == slow);
    degraded += is_slow ? 1 : 0;
    const double factor = host_link ? 1.0 : is_slow ? 0.45 : 0.9;
    EXPECT_NEAR(capacity[LinkId(i)].gigabytes_per_second(),
                link.capacity.gigabytes_per_second() * factor, 1e-6);
  }
  EXPECT_EQ(degraded, 2);
}

}  // namespace
}  // namespace herdsim

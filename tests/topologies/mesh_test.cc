// Topologies without a switch above all others: published figures, and routes by a second way of
// finding them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/fabric/graph_algorithms.h"
#include "sim/network/max_min.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

ClusterSpec torus(std::vector<int64_t> extents) {
  ClusterSpec spec;
  spec.topology = "torus";
  spec.torus = std::move(extents);
  spec.gpus = 1;
  for (const int64_t n : spec.torus) spec.gpus *= n;
  spec.gpus_per_host = 1;
  spec.nic = gigabits_per_second(2400);
  return spec;
}

// Google Cloud, "TPU v4": 4,096 chips, 24 TB/s of bisection. The line rate of ISCA 2023, six links
// of 50 GB/s, makes 25.6.
TEST(Torus, has_the_figures_of_a_tpu_v4_pod) {
  const TopologyFacts facts = find_topology("torus")->facts(torus({16, 16, 16}));
  EXPECT_EQ(facts.degree, 6);
  EXPECT_EQ(facts.switch_links, 3 * 4096);
  EXPECT_EQ(facts.diameter, 24);
  EXPECT_NEAR(facts.cluster_bisection.gigabytes_per_second(), 24'000, 0.07 * 24'000);
}

TEST(Torus, is_a_mesh_where_its_ends_are_not_joined) {
  ClusterSpec spec = torus({8, 4, 2});
  spec.torus_wraps = false;
  const TopologyFacts facts = find_topology("torus")->facts(spec);
  EXPECT_EQ(facts.switch_links, 7 * 8 + 3 * 16 + 1 * 32);
  EXPECT_EQ(facts.diameter, 7 + 3 + 1);
  EXPECT_EQ(facts.cluster_bisection, gigabytes_per_second(50) * 8);
  EXPECT_EQ(network_diameter(find_topology("torus")->build(spec)), facts.diameter);
}

TEST(Torus, routes_are_as_short_as_can_be) {
  for (const bool wraps : {false, true}) {
    ClusterSpec spec = torus({5, 4, 3});
    spec.torus_wraps = wraps;
    const Fabric fabric = find_topology("torus")->build(spec);
    for (size_t a = 0; a < 60; ++a) {
      for (size_t b = 0; b < 60; ++b) {
        if (a == b) continue;
        std::vector<LinkId> route;
        fabric.append_route_above_tors(GpuId(a), GpuId(b), route);
        int64_t shortest = 0;
        const auto& n = fabric.torus()->extents;
        const auto from = fabric.torus()->at(static_cast<int64_t>(a));
        const auto to = fabric.torus()->at(static_cast<int64_t>(b));
        for (size_t d = 0; d < 3; ++d) {
          const int64_t apart = std::abs(from[d] - to[d]);
          shortest += wraps ? std::min(apart, n[d] - apart) : apart;
        }
        EXPECT_EQ(static_cast<int64_t>(route.size()), shortest) << a << " to " << b;
        EXPECT_EQ(fabric.torus()->distance(static_cast<int64_t>(a), static_cast<int64_t>(b)),
                  shortest);
      }
    }
  }
}

TEST(Torus, says_what_is_wrong_with_its_extents) {
  const auto fields = [](const ClusterSpec& spec) {
    Faults faults;
    append_cluster_faults(spec, "", faults);
    std::vector<std::string> all;
    for (const Fault& fault : faults.list()) all.push_back(fault.field);
    return all;
  };
  using Fields = std::vector<std::string>;
  EXPECT_EQ(fields(torus({4, 4})), Fields{});
  ClusterSpec wrong = torus({4, 4});
  wrong.gpus = 17;
  EXPECT_EQ(fields(wrong), Fields{"torus"});
  EXPECT_EQ(fields(torus({2, 2, 2, 2})), Fields{"torus"});
  wrong = torus({4, 4});
  wrong.torus = {};
  EXPECT_EQ(fields(wrong), Fields{"torus"});
  wrong = torus({4, 4});
  wrong.torus = {-4, -4};
  EXPECT_EQ(fields(wrong), (Fields{"torus[0]", "torus[1]"}));
  wrong = torus({4, 4});
  wrong.degraded = {{.tor = 0, .down = true}};
  wrong.in_network_reduction = true;
  EXPECT_EQ(fields(wrong).front(), "degraded[0]");
  wrong = torus({4, 4});
  wrong.topology = "clos3";
  EXPECT_EQ(fields(wrong).back(), "torus");
}

ClusterSpec frontier() {
  ClusterSpec spec;
  spec.topology = "dragonfly";
  spec.gpus = 74 * 512;
  spec.gpus_per_host = 4;
  spec.gpus_per_tor = 16;
  spec.gpus_per_pod = 512;
  spec.global_lanes = 4;
  spec.nic = gigabits_per_second(200);
  return spec;
}

// glennklockwood.com/garden/systems/frontier: 512 ports down and 58.4 Tb/s out of a group, a
// blocking factor of 1.753; 992 ports inside a group; 64-port switches. Kim et al.: three hops
// between routers.
TEST(Dragonfly, has_the_figures_of_frontier) {
  const TopologyFacts facts = find_topology("dragonfly")->facts(frontier());
  EXPECT_EQ(facts.pods, 74);
  EXPECT_EQ(facts.tors, 74 * 32);
  EXPECT_EQ(facts.switch_links, 74 * 992 / 2);
  EXPECT_EQ(facts.group_links, 74 * 73 / 2 * 4);
  EXPECT_NEAR(facts.oversubscription, 1.753, 0.001);
  EXPECT_LE(facts.degree, 64);
  EXPECT_EQ(facts.diameter, 2 + 3);
}

// "h = p = a / 2": the balanced dragonfly of Kim et al. has a h + 1 groups at most, one cable
// between any two.
TEST(Dragonfly, spreads_its_global_cables_over_the_routers) {
  ClusterSpec spec;
  spec.topology = "dragonfly";
  spec.gpus_per_host = 2;
  spec.gpus_per_tor = 2;
  spec.gpus_per_pod = 8;  // p = 2, a = 4, h = 2
  spec.gpus = 9 * 8;
  const Fabric fabric = find_topology("dragonfly")->build(spec);
  std::map<NodeId, int> of_router;
  for (const Link& link : fabric.links()) {
    if (link.kind == LinkKind::kGroupToGroup) ++of_router[link.from];
  }
  EXPECT_EQ(of_router.size(), 36U);
  for (const auto& [router, cables] : of_router) EXPECT_EQ(cables, 2);
  EXPECT_EQ(find_topology("dragonfly")->facts(spec).degree, 2 + 3 + 2);
}

// Of what their ports carry, that the slowest of these GPUs gets over its route.
double slowest_share(const ClusterSpec& spec, const std::vector<std::pair<size_t, size_t>>& pairs) {
  const Fabric fabric = find_topology("dragonfly")->build(spec);
  std::vector<std::vector<Crossing>> paths;
  std::vector<FlowPath> flows;
  std::vector<Bandwidth> capacity;
  for (const Link link : fabric.links()) capacity.push_back(link.capacity);
  for (const auto& [from, to] : pairs) {
    std::vector<LinkId> route;
    fabric.append_route(GpuId(from), GpuId(to), route);
    std::set<LinkId> distinct(route.begin(), route.end());
    EXPECT_EQ(distinct.size(), route.size()) << from << " to " << to;
    for (size_t i = 1; i < route.size(); ++i) {
      EXPECT_EQ(fabric.links()[route[i - 1]].to, fabric.links()[route[i]].from)
          << from << " to " << to;
    }
    std::vector<Crossing>& path = paths.emplace_back();
    for (const LinkId link : route) path.push_back({.link = link, .count = 1});
  }
  for (const auto& path : paths) flows.push_back({path});
  double slowest = 1;
  for (const Bandwidth rate : max_min_rates(capacity, flows)) {
    slowest = std::min(slowest, rate.gigabytes_per_second() / spec.nic.gigabytes_per_second());
  }
  return slowest;
}

// 10 groups of 8 GPUs whose cables can carry what they send (9 of a group, many inside).
ClusterSpec ten_groups() {
  ClusterSpec spec;
  spec.topology = "dragonfly";
  spec.gpus_per_host = 1;
  spec.gpus_per_tor = 2;
  spec.gpus_per_pod = 8;
  spec.local_lanes = 4;
  spec.gpus = 80;
  return spec;
}

std::vector<std::pair<size_t, size_t>> to_the_group_after(size_t groups, const ClusterSpec& spec) {
  std::vector<std::pair<size_t, size_t>> pairs;
  const auto gpus = static_cast<size_t>(spec.gpus), group = static_cast<size_t>(spec.gpus_per_pod);
  for (size_t gpu = 0; gpu < gpus; ++gpu) pairs.emplace_back(gpu, (gpu + groups * group) % gpus);
  return pairs;
}

// Kim et al., section 4: where every group sends to the next one, minimal routes are bound by the
// one cable that joins them; Valiant's give half of the rate, whichever group it is.
TEST(Dragonfly, carries_the_worst_traffic_as_fast_as_its_detours_allow) {
  for (size_t after = 1; after < 10; ++after) {
    ClusterSpec spec = ten_groups();
    const auto pairs = to_the_group_after(after, spec);
    EXPECT_NEAR(slowest_share(spec, pairs), 1 / 8.0, 1e-9) << after;
    spec.routing = "adaptive";
    EXPECT_NEAR(slowest_share(spec, pairs), 1 / 8.0, 1e-9) << after;
    spec.routing = "valiant";
    EXPECT_NEAR(slowest_share(spec, pairs), 1 / 2.0, 1e-9) << after;
    // A share s of detours: the cable itself carries 8 (1 - s), the others 8 s / 8 twice.
    spec.routing = "ugal";
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      spec.detour_share = share;
      // Whole destinations: of 8 s detours over 8 groups each takes one or none.
      const double on_others = share > 0 ? 2.0 : 0.0;
      EXPECT_GE(slowest_share(spec, pairs), 1 / std::max({1.0, 8 * (1 - share), on_others}) - 1e-9)
          << after << ", " << share;
      EXPECT_LE(slowest_share(spec, pairs), 1 / std::max(1.0, 8 * (1 - share)) + 1e-9)
          << after << ", " << share;
    }
  }
  // Two cables between two groups carry twice as much.
  ClusterSpec spec = ten_groups();
  spec.global_lanes = 2;
  EXPECT_NEAR(slowest_share(spec, to_the_group_after(1, spec)), 1 / 4.0, 1e-9);
}

// All destinations in turn: minimal routes use every cable alike, detours cost half.
TEST(Dragonfly, loses_with_detours_where_traffic_is_even) {
  ClusterSpec spec = ten_groups();
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t from = 0; from < 80; ++from) {
    for (size_t to = 0; to < 80; ++to) {
      if (from / 8 != to / 8) pairs.emplace_back(from, to);
    }
  }
  const double minimal = slowest_share(spec, pairs);
  spec.routing = "valiant";
  EXPECT_LT(slowest_share(spec, pairs), 0.7 * minimal);
}

TEST(Dragonfly, refuses_groups_that_are_not_full_and_shapes_beyond_memory) {
  const auto first = [](const ClusterSpec& spec) {
    Faults faults;
    append_cluster_faults(spec, "", faults);
    return faults.empty() ? std::string() : faults.list().front().field;
  };
  EXPECT_EQ(first(frontier()), "");
  ClusterSpec spec = frontier();
  spec.gpus = 74 * 512 - 16;
  EXPECT_EQ(first(spec), "gpus");
  spec = frontier();
  spec.gpus_per_tor = 4;
  spec.gpus_per_pod = 4;
  spec.gpus = 1 << 20;
  EXPECT_EQ(first(spec), "gpus_per_tor");
  spec = frontier();
  spec.gpus_per_tor = 256;
  EXPECT_EQ(first(spec), "local_lanes");
  spec = frontier();
  spec.degraded = {{.pod = 3, .uplink_factor = 0.5}};
  EXPECT_EQ(first(spec), "degraded[0].pod");
  spec = frontier();
  spec.in_network_reduction = true;
  EXPECT_EQ(first(spec), "in_network_reduction");
}

}  // namespace
}  // namespace herdsim

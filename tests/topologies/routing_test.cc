// Every routing, on racks whose 16 GPUs all send to the next rack, as rings in topology order do.
#include "topologies/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "sim/collectives/group_path.h"
#include "sim/network/max_min.h"
#include "topologies/switch_buffers.h"

namespace herdsim {
namespace {

constexpr int64_t kRack = 16;

ClusterSpec racks(int64_t count, int64_t uplinks) {
  ClusterSpec spec;
  spec.topology = "clos3";
  spec.gpus = count * kRack;
  spec.gpus_per_pod = spec.gpus;
  spec.tor_uplinks = uplinks;
  spec.pod_oversubscription = 1;
  return spec;
}

LaneBundles all_lanes(const Fabric& fabric) {
  return LaneBundles(fabric, [&](LinkId link) { return fabric.links()[link].width; });
}

// Every GPU to the GPU of its place `racks_on` racks on.
std::vector<Connection> shifted(int64_t gpus, int64_t racks_on) {
  std::vector<Connection> connections;
  for (int64_t i = 0; i < gpus; ++i) {
    connections.push_back(
        {GpuId(static_cast<size_t>(i)), GpuId(static_cast<size_t>((i + racks_on * kRack) % gpus))});
  }
  return connections;
}

struct Racks {
  Racks(int64_t count, int64_t uplinks)
      : spec(racks(count, uplinks)),
        fabric(find_topology("clos3")->build(spec)),
        lanes(all_lanes(fabric)) {}
  SpreadEffect slowdown(const LaneSpread& spread, uint64_t seed) const {
    return connection_slowdown(fabric, lanes, shifted(spec.gpus, 1), 1, spread, seed);
  }
  double mean_worst(const LaneSpread& spread, int seeds) const {
    double sum = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
      sum += slowdown(spread, static_cast<uint64_t>(seed)).worst;
    }
    return sum / seeds;
  }

  ClusterSpec spec;
  Fabric fabric;
  LaneBundles lanes;
};

LaneSpread spread_of(const char* routing, int64_t queue_pairs) {
  ClusterSpec spec;
  spec.routing = routing;
  spec.queue_pairs = queue_pairs;
  return lane_spread(spec);
}

// Balls in bins by Monte Carlo: 16 GPUs x F equal subflows over U uplinks, static split; the mean
// slowdown of one ToR and of the worst of 64. The table is printed to two or three digits.
TEST(Hashing, slows_connections_down_as_the_collision_table_says) {
  struct Row {
    int64_t subflows, uplinks;
    double one, of_64;
  };
  for (const Row& row : {Row{1, 16, 3.1, 5.2}, Row{1, 18, 2.9, 5.0}, Row{1, 32, 2.4, 4.2},
                         Row{4, 16, 2.0, 2.9}, Row{4, 18, 1.8, 2.7}, Row{4, 32, 1.35, 2.05},
                         Row{16, 16, 1.46, 1.87}, Row{16, 18, 1.34, 1.72}, Row{16, 32, 1.01, 1.20},
                         Row{64, 16, 1.23, 1.41}, Row{64, 18, 1.11, 1.29}, Row{64, 32, 1.0, 1.0}}) {
    const LaneSpread hashed{.rule = SpreadRule::kHashed, .subflows = row.subflows};
    // Two racks, of which one is looked at: the worst of its 16 connections.
    const Racks two(2, row.uplinks);
    double one = 0;
    constexpr int kSeeds = 400;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      std::vector<Connection> first = shifted(2 * kRack, 1);
      first.resize(kRack);
      one += connection_slowdown(two.fabric, two.lanes, first, 1, hashed, seed).worst / kSeeds;
    }
    EXPECT_NEAR(one / row.one, 1, 0.05) << row.subflows << " over " << row.uplinks;
    EXPECT_NEAR(Racks(64, row.uplinks).mean_worst(hashed, 20) / row.of_64, 1, 0.07)
        << row.subflows << " over " << row.uplinks;
  }
}

// The table's worst of 1,024 ToRs, which are more subflows than are looked at: 16 ToRs in 64 stand
// for all.
TEST(Hashing, of_a_sample_of_the_racks_says_what_the_worst_of_all_is) {
  struct Row {
    int64_t subflows, uplinks;
    double of_1024;
  };
  for (const Row& row : {Row{16, 16, 2.1}, Row{16, 18, 1.9}, Row{16, 32, 1.37}, Row{64, 16, 1.5},
                         Row{64, 18, 1.4}}) {
    const LaneSpread hashed{.rule = SpreadRule::kHashed, .subflows = row.subflows};
    EXPECT_NEAR(Racks(1024, row.uplinks).mean_worst(hashed, 8) / row.of_1024, 1, 0.08)
        << row.subflows << " over " << row.uplinks;
  }
}

// Gangidi et al., SIGCOMM 2024: all-reduce gains up to 40 % over a baseline whose channels make
// about four flows. ToRs with twice the uplinks, as there.
TEST(Hashing, gains_30_to_50_percent_from_16_flows_instead_of_4) {
  for (const int64_t count : {8, 64}) {
    const Racks r(count, 32);
    const double gain =
        r.mean_worst(spread_of("ecmp", 4), 20) / r.mean_worst(spread_of("e-ecmp", 16), 20) - 1;
    EXPECT_GE(gain, 0.27) << count * kRack << " GPUs";
    EXPECT_LE(gain, 0.50) << count * kRack << " GPUs";
  }
}

TEST(TrafficEngineering, gains_up_to_10_percent_over_16_flows_hashed_at_random) {
  const Racks r(64, 32);
  const double gain = r.mean_worst(spread_of("ecmp", 16), 20) /
                          r.mean_worst(spread_of("traffic-engineering", 16), 20) -
                      1;
  EXPECT_GE(gain, 0.03);
  EXPECT_LE(gain, 0.10);
}

TEST(Spraying, is_within_5_percent_of_ideal) {
  const Racks r(64, 16);
  for (const char* routing : {"adaptive", "packet-spraying"}) {
    EXPECT_LE(r.slowdown(spread_of(routing, 16), 1).worst, 1.05) << routing;
    EXPECT_GE(r.slowdown(spread_of(routing, 16), 1).worst, 1.0) << routing;
  }
}

// Whole racks send to whole racks: ports differ. Where a job has the odd hosts of one rack and the
// even of another, two connections of a rack may go to one port number of two racks.
TEST(PathPinning, is_ideal_for_whole_racks_and_collides_for_fragments) {
  const Racks r(8, 16);
  const LaneSpread pinned = spread_of("path-pinning", 16);
  EXPECT_EQ(r.slowdown(pinned, 1).worst, 1.0);
  std::vector<Connection> fragments;
  for (size_t i = 0; i < 8; ++i) {
    fragments.push_back({GpuId(i), GpuId(kRack + i)});          // to the first host of rack 1
    fragments.push_back({GpuId(8 + i), GpuId(2 * kRack + i)});  // and of rack 2
  }
  EXPECT_EQ(connection_slowdown(r.fabric, r.lanes, fragments, 1, pinned, 1).worst, 2.0);
}

// Each lane a link of its own and each subflow a flow, shared by the solver that defines max-min:
// the slowest subflow of all gets exactly what the rule of equal shares says.
TEST(EveryRouting, gives_the_slowest_connection_what_explicit_subflows_get) {
  for (const Routing& row : routings()) {
    if (row.rule == SpreadRule::kEven) continue;
    for (const int64_t uplinks : {12, 16, 32}) {
      for (uint64_t seed = 1; seed <= 5; ++seed) {
        const Racks r(8, uplinks);
        const std::vector<Connection> connections = shifted(r.spec.gpus, 3);
        const LaneSpread spread = spread_of(std::string(row.name).c_str(), 4);
        const auto hops = subflow_lanes(r.fabric, r.lanes, connections, spread, seed);

        std::map<std::pair<size_t, uint32_t>, size_t> link_of;
        std::vector<Bandwidth> capacity;
        std::vector<std::vector<Crossing>> paths;
        for (const auto& path : hops) {
          std::vector<Crossing>& crossings = paths.emplace_back();
          for (const LaneHop& hop : path) {
            const auto [at, is_new] =
                link_of.emplace(std::pair(hop.link.index(), hop.lane), capacity.size());
            if (is_new) capacity.push_back(r.spec.nic);
            crossings.push_back({LinkId(at->second)});
          }
        }
        std::vector<FlowPath> flows;
        for (const auto& path : paths) flows.push_back({path, r.spec.nic / spread.subflows});
        const std::vector<Bandwidth> rates = max_min_rates(capacity, flows);

        // With a static split a connection is as slow as its slowest subflow.
        const LaneSpread split{.rule = spread.rule, .subflows = spread.subflows};
        const double worst =
            connection_slowdown(r.fabric, r.lanes, connections, 1, split, seed).worst;
        const Bandwidth slowest = *std::min_element(rates.begin(), rates.end());
        EXPECT_NEAR(worst * slowest.gigabytes_per_second() * static_cast<double>(spread.subflows),
                    r.spec.nic.gigabytes_per_second(), 1e-6)
            << row.name << ", " << uplinks << " uplinks, seed " << seed;
      }
    }
  }
}

// Flow control on shallow buffers: 1.3 times what the slowest connection loses, 1.1 times what the
// mean one does.
TEST(SwitchBuffers, multiply_what_a_collision_adds) {
  const Racks r(64, 16);
  for (const SwitchBuffers& row : switch_buffers()) {
    EXPECT_EQ(find_switch_buffers(row.name), &row);
    EXPECT_FALSE(row.help.empty() || row.provenance.source.empty()) << row.name;
    for (const char* routing : {"ecmp", "e-ecmp", "path-pinning", "packet-spraying"}) {
      ClusterSpec spec;
      spec.routing = routing;
      spec.queue_pairs = 4;
      const SpreadEffect deep = r.slowdown(lane_spread(spec), 7);
      spec.buffers = row.name;
      const SpreadEffect effect = r.slowdown(lane_spread(spec), 7);
      const double none = 1 / lane_spread(spec).line_share;
      EXPECT_NEAR(effect.worst - none, row.tail_factor * (deep.worst - none), 1e-12)
          << row.name << routing;
      EXPECT_NEAR(effect.mean - none, row.mean_factor * (deep.mean - none), 1e-12)
          << row.name << routing;
    }
  }
  EXPECT_EQ(find_switch_buffers("bottomless"), nullptr);
}

// N GPUs under as many ToRs to one: each gets its part of the receiver's NIC, and the NIC is full.
// A GPU that sends beside one of them through the same ToR to somebody else loses nothing.
TEST(Incast, shares_the_receivers_nic_and_slows_nobody_else) {
  const Racks r(64, 16);
  std::vector<Bandwidth> capacity;
  for (const Link& link : r.fabric.links()) capacity.push_back(link.capacity);
  for (const size_t senders : {1, 2, 7, 32, 63}) {
    std::vector<std::vector<Crossing>> paths;
    const auto add = [&](GpuId from, GpuId to) {
      append_point_to_point_path(r.fabric, from, to, paths.emplace_back());
    };
    for (size_t s = 1; s <= senders; ++s) add(GpuId(s * kRack), GpuId(0));
    add(GpuId(kRack + 1), GpuId(2 * kRack + 1));
    std::vector<FlowPath> flows;
    for (const auto& path : paths) flows.push_back({path, r.spec.nic});
    const std::vector<Bandwidth> rates = max_min_rates(capacity, flows);
    for (size_t s = 0; s < senders; ++s) {
      EXPECT_EQ(rates[s], r.spec.nic / static_cast<int64_t>(senders)) << senders;
    }
    EXPECT_EQ(rates.back(), r.spec.nic) << senders;
  }
}

TEST(EveryRouting, is_the_same_for_a_seed) {
  const Racks r(8, 16);
  for (const Routing& row : routings()) {
    const LaneSpread spread = spread_of(std::string(row.name).c_str(), 4);
    EXPECT_EQ(r.slowdown(spread, 3).worst, r.slowdown(spread, 3).worst) << row.name;
    EXPECT_EQ(find_routing(row.name), &row);
    EXPECT_FALSE(row.help.empty());
    EXPECT_FALSE(row.provenance.source.empty());
  }
  EXPECT_EQ(find_routing("magic"), nullptr);
}

// Whole bundles without a collision are not looked into; that must be no different from counting.
TEST(EveryRouting, gives_connections_what_counting_their_lanes_one_by_one_gives) {
  for (const Routing& row : routings()) {
    if (row.rule == SpreadRule::kEven) continue;
    for (const int64_t uplinks : {7, 16, 40}) {
      const Racks r(24, uplinks);
      const std::vector<Connection> connections = shifted(r.spec.gpus, 3);
      const LaneSpread spread = spread_of(std::string(row.name).c_str(), 5);
      const auto hops = subflow_lanes(r.fabric, r.lanes, connections, spread, 11);
      std::map<std::pair<size_t, uint32_t>, int> load;
      for (const auto& path : hops) {
        for (const LaneHop& hop : path) ++load[{hop.link.index(), hop.lane}];
      }
      double worst = 0, sum = 0;
      const auto subflows = static_cast<size_t>(spread.subflows);
      for (size_t c = 0; c < connections.size(); ++c) {
        double slowest = 1, mean = 0;
        for (size_t s = 0; s < subflows; ++s) {
          int most = 0;
          for (const LaneHop& hop : hops[c * subflows + s]) {
            most = std::max(most, load[{hop.link.index(), hop.lane}]);
          }
          const double share = std::min(1.0, static_cast<double>(subflows) / most);
          slowest = std::min(slowest, share);
          mean += share / static_cast<double>(subflows);
        }
        const double slowdown = 1 / (slowest + spread.rebalanced * (mean - slowest));
        worst = std::max(worst, slowdown);
        sum += slowdown;
      }
      const LaneSpread plain{
          .rule = spread.rule, .subflows = spread.subflows, .rebalanced = spread.rebalanced};
      const SpreadEffect effect = connection_slowdown(r.fabric, r.lanes, connections, 1, plain, 11);
      EXPECT_DOUBLE_EQ(effect.worst, worst) << row.name << ", " << uplinks << " uplinks";
      EXPECT_DOUBLE_EQ(effect.mean, sum / static_cast<double>(connections.size())) << row.name;
    }
  }
}

TEST(EveryRouting, never_gains_from_a_lane_that_is_lost) {
  const Racks r(16, 16);
  const LaneBundles fewer(r.fabric, [&](LinkId id) {
    const Link link = r.fabric.links()[id];
    return link.kind == LinkKind::kTorToPod ? 8 : link.width;
  });
  for (const Routing& row : routings()) {
    const LaneSpread spread = spread_of(std::string(row.name).c_str(), 16);
    const double whole = r.slowdown(spread, 1).worst;
    const double half =
        connection_slowdown(r.fabric, fewer, shifted(r.spec.gpus, 1), 1, spread, 1).worst;
    EXPECT_GE(half, whole) << row.name;
  }
}

// The error is estimated from one draw's parts; it must agree with the spread over seeds. A
// standard deviation of 100 draws of a maximum is known to about 10 %, the estimate's mean over
// them to less; parts are maxima of fewer draws, which spread more.
TEST(Hashing, states_the_spread_of_its_maximum_over_seeds) {
  const Racks r(64, 16);
  const LaneSpread hashed{.rule = SpreadRule::kHashed, .subflows = 16};
  double sum = 0, square = 0, stated = 0;
  constexpr int kSeeds = 100;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SpreadEffect effect = r.slowdown(hashed, seed);
    sum += effect.worst;
    square += effect.worst * effect.worst;
    stated += effect.error / kSeeds;
  }
  const double sigma = std::sqrt((square - sum * sum / kSeeds) / (kSeeds - 1));
  EXPECT_GT(stated, 0.6 * sigma);
  EXPECT_LT(stated, 1.8 * sigma);
}

}  // namespace
}  // namespace herdsim

// Collectives on a torus against running them step by step, routing every message, and what Google
// publishes.
#include "sim/collectives/torus_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_tuning.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

constexpr double kLink = 45;  // GB/s one way

NcclTuning tuning() {
  NcclTuning t = h100_tuning("2.20");
  t.torus_link = kLink;
  return t;
}

Fabric torus(std::vector<int64_t> extents, bool wraps = true) {
  ClusterSpec spec;
  spec.topology = "torus";
  spec.torus = std::move(extents);
  spec.torus_wraps = wraps;
  spec.gpus =
      std::accumulate(spec.torus.begin(), spec.torus.end(), int64_t{1}, std::multiplies<>());
  spec.gpus_per_host = 1;
  return find_topology("torus")->build(spec);
}

std::vector<GpuId> every_chip(const Fabric& fabric) {
  std::vector<GpuId> all;
  for (size_t i = 0; i < fabric.gpus(); ++i) all.emplace_back(i);
  return all;
}

std::vector<GpuId> chips(std::vector<size_t> numbers) {
  std::vector<GpuId> all;
  for (const size_t i : numbers) all.emplace_back(i);
  return all;
}

CollectivePlan plan_of(CollectiveKind kind, Bytes bytes, const Fabric& fabric,
                       const std::vector<GpuId>& members) {
  return plan_collective(kind, bytes, group_shape(fabric, members), tuning());
}

double busiest_gigabytes(const CollectivePlan& plan) {
  return static_cast<double>(plan.volume.count()) * 1e-9;
}

// "How to scale your model": an all-gather of V bytes takes V / (bidirectional bandwidth * axes),
// an all-reduce twice that, an all-to-all a quarter.
TEST(TorusCollectives, take_what_the_scaling_book_says) {
  const Bytes size = gigabytes(8);
  for (const size_t axes : {1, 2, 3}) {
    const Fabric fabric = torus(std::vector<int64_t>(axes, 16));
    const auto all = every_chip(fabric);
    const double n = static_cast<double>(all.size());
    const double expected = 8 / (2 * kLink * static_cast<double>(axes)) * (n - 1) / n;
    const auto seconds = [&](CollectiveKind kind) {
      const CollectivePlan plan = plan_of(kind, size, fabric, all);
      return (plan.alone() - plan.latency).seconds();
    };
    EXPECT_NEAR(seconds(CollectiveKind::kAllGather), expected, 1e-6);
    EXPECT_NEAR(seconds(CollectiveKind::kReduceScatter), expected, 1e-6);
    EXPECT_NEAR(seconds(CollectiveKind::kAllReduce), 2 * expected, 1e-6);
    // Eight steps of 1 us half way around each ring.
    EXPECT_EQ(plan_of(CollectiveKind::kAllGather, size, fabric, all).latency,
              microseconds(8 * static_cast<int64_t>(axes)));
  }
  const Fabric ring = torus({16});
  const auto all = every_chip(ring);
  // Of an array of 16 * V over 16 chips.
  EXPECT_NEAR(busiest_gigabytes(plan_of(CollectiveKind::kAllToAll, size, ring, all)), 16 * 8.0 / 8,
              1e-6);
  const Fabric line = torus({16}, false);
  EXPECT_NEAR(busiest_gigabytes(plan_of(CollectiveKind::kAllGather, size, line, all)), 7.5, 1e-6);
  EXPECT_EQ(plan_of(CollectiveKind::kAllGather, size, line, all).latency, microseconds(15));
}

// Google Cloud, "TPU v4": 1.1 PB/s of all-reduce bandwidth a pod, which is what its chips send.
TEST(TorusCollectives, reach_the_all_reduce_bandwidth_of_a_tpu_v4_pod) {
  const Fabric fabric = torus({16, 16, 16});
  const auto all = every_chip(fabric);
  const CollectivePlan plan = plan_of(CollectiveKind::kAllReduce, gigabytes(100), fabric, all);
  const double sent_by_a_chip = 2 * 100e9 * 4095 / 4096;
  EXPECT_NEAR(sent_by_a_chip * 4096 / plan.alone().seconds() * 1e-15, 1.1, 0.02);
}

// Runs the all-gather: k parts, part r along axis r first, each line of chips passing blocks to its
// neighbours both ways until all have them. Counts blocks on every link, phase by phase.
double gathered_share(const TorusShape& shape) {
  const int64_t n = shape.chips();
  std::vector<size_t> axes;
  for (size_t d = 0; d < 3; ++d) {
    if (shape.extents[d] > 1) axes.push_back(d);
  }
  const size_t k = axes.size();
  using Blocks = std::set<int64_t>;
  std::vector<std::vector<Blocks>> held(k, std::vector<Blocks>(static_cast<size_t>(n)));
  for (auto& part : held) {
    for (int64_t i = 0; i < n; ++i) part[static_cast<size_t>(i)] = {i};
  }
  double all_phases = 0;
  for (size_t phase = 0; phase < k; ++phase) {
    double busiest = 0;
    for (size_t part = 0; part < k; ++part) {
      const size_t d = axes[(part + phase) % k];
      const int64_t c = shape.extents[d];
      const std::vector<Blocks> before = held[part];
      for (int64_t chip = 0; chip < n; ++chip) {
        auto at = shape.at(chip);
        if (at[d] != 0) continue;
        // How many of the line's blocks pass each of its links forwards; on a ring half of each, by
        // symmetry as many backwards.
        std::vector<double> forwards(static_cast<size_t>(c), 0);
        Blocks gathered;
        for (int64_t from = 0; from < c; ++from) {
          at[d] = from;
          const Blocks& own = before[static_cast<size_t>(shape.chip(at))];
          gathered.insert(own.begin(), own.end());
          const int64_t reach = shape.is_ring(d) ? c - 1 : c - 1 - from;
          for (int64_t step = 0; step < reach; ++step) {
            forwards[static_cast<size_t>((from + step) % c)] +=
                static_cast<double>(own.size()) * (shape.is_ring(d) ? 0.5 : 1);
          }
        }
        busiest = std::max(busiest, *std::max_element(forwards.begin(), forwards.end()));
        for (int64_t to = 0; to < c; ++to) {
          at[d] = to;
          held[part][static_cast<size_t>(shape.chip(at))] = gathered;
        }
      }
    }
    all_phases += busiest;
  }
  for (const auto& part : held) {
    for (const Blocks& blocks : part) EXPECT_EQ(static_cast<int64_t>(blocks.size()), n);
  }
  return all_phases / static_cast<double>(n) / static_cast<double>(k);
}

TEST(TorusCollectives, load_links_as_running_the_rings_does) {
  for (const bool wraps : {true, false}) {
    for (const auto& extents : std::vector<std::vector<int64_t>>{
             {8}, {2}, {5}, {4, 4}, {3, 6}, {2, 4, 4}, {4, 4, 4}, {5, 3, 2}, {2, 2, 2}}) {
      const Fabric fabric = torus(extents, wraps);
      const CollectivePlan plan =
          plan_of(CollectiveKind::kAllGather, gigabytes(1), fabric, every_chip(fabric));
      EXPECT_NEAR(busiest_gigabytes(plan), gathered_share(*fabric.torus()), 1e-6)
          << fabric.gpus() << " chips, " << wraps;
    }
  }
}

// A message of every pair on its route. Half way around a ring an exchange goes both ways, a route
// one way, so single links may carry some more.
TEST(TorusCollectives, exchange_over_the_busiest_link_what_all_pairs_route_over_it) {
  for (const auto& extents : std::vector<std::vector<int64_t>>{
           {8}, {5}, {4, 4}, {3, 5}, {4, 4, 4}, {8, 4, 2}, {3, 3, 5}}) {
    const Fabric fabric = torus(extents);
    const auto all = every_chip(fabric);
    std::map<LinkId, int64_t> pairs;
    std::vector<LinkId> route;
    for (const GpuId from : all) {
      for (const GpuId to : all) {
        if (from != to) fabric.append_route_above_tors(from, to, route);
      }
    }
    for (const LinkId link : route) ++pairs[link];
    int64_t most = 0;
    for (const auto& [link, count] : pairs) most = std::max(most, count);
    const double routed = static_cast<double>(most) / static_cast<double>(all.size());
    const CollectivePlan plan = plan_of(CollectiveKind::kAllToAll, gigabytes(1), fabric, all);
    EXPECT_NEAR(busiest_gigabytes(plan), routed, 1e-6) << fabric.gpus() << " chips";
  }
}

TEST(TorusCollectives, know_rings_lines_boxes_and_everything_else) {
  const Fabric fabric = torus({8, 4, 4});
  const auto group = [&](std::vector<size_t> numbers) {
    return group_shape(fabric, chips(std::move(numbers))).torus;
  };
  const TorusGroup ring = group({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_TRUE(ring.is_box && ring.axes[0].is_ring);
  const TorusGroup line = group({0, 1, 2, 3});
  EXPECT_TRUE(line.is_box && !line.axes[0].is_ring);
  EXPECT_EQ(line.axes[0].count, 4);
  const TorusGroup spaced = group({0, 2, 4, 6});
  EXPECT_TRUE(spaced.is_box && spaced.axes[0].is_ring);
  EXPECT_EQ(spaced.axes[0].stride, 2);
  const TorusGroup plane = group({0, 1, 8, 9});
  EXPECT_TRUE(plane.is_box);
  EXPECT_EQ(plane.axes[1].count, 2);
  EXPECT_FALSE(group({0, 1, 8, 10}).is_box);
  EXPECT_FALSE(group({0, 1, 3}).is_box);
  EXPECT_EQ(group({0, 1, 3}).longest_edge, 3);
  const auto plan = plan_of(CollectiveKind::kAllGather, gigabytes(1), fabric, chips({0, 1, 3}));
  EXPECT_TRUE(plan.extrapolated);
  EXPECT_NEAR(busiest_gigabytes(plan), 1.0 / 3, 1e-6);
}

// What a box crosses is all links between its chips, each way once; a loop crosses links twice
// where its routes share them.
TEST(TorusCollectives, cross_the_links_between_the_chips_of_a_box) {
  const Fabric fabric = torus({4, 4, 4});
  const auto crossings = [&](const std::vector<GpuId>& members) {
    std::vector<Crossing> out;
    append_group_path(fabric, members,
                      plan_of(CollectiveKind::kAllGather, gigabytes(1), fabric, members), out);
    return out;
  };
  EXPECT_EQ(crossings(every_chip(fabric)).size(), 2U * 3 * 64);
  for (const Crossing& c : crossings(every_chip(fabric))) EXPECT_EQ(c.count, 1);
  EXPECT_EQ(crossings(chips({0, 1, 2})).size(), 2U * 2);
  EXPECT_EQ(crossings(chips({0, 1, 4, 5})).size(), 2U * 4);
  // 0 - 1 - 3 and back to 0, the short way around.
  int64_t loop = 0;
  for (const Crossing& c : crossings(chips({0, 1, 6}))) loop += c.count;
  EXPECT_EQ(loop, 2 * (1 + 2 + 3));
}

TEST(TorusCollectives, take_longer_for_more_bytes_and_hops) {
  using enum CollectiveKind;
  for (const CollectiveKind kind :
       {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast}) {
    for (const int64_t extent : {2, 4, 8, 16}) {
      const Fabric fabric = torus({extent, 4});
      const auto all = every_chip(fabric);
      EXPECT_LT(plan_of(kind, megabytes(1), fabric, all).alone(),
                plan_of(kind, gigabytes(1), fabric, all).alone());
    }
  }
  const Fabric fabric = torus({8, 8});
  EXPECT_EQ(plan_of(kSendRecv, megabytes(1), fabric, chips({0, 4})).latency, microseconds(4));
  EXPECT_EQ(plan_of(kSendRecv, megabytes(1), fabric, chips({0, 7})).latency, microseconds(1));
}

}  // namespace
}  // namespace herdsim

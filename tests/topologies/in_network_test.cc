// Which links an all-reduce in the switches loads.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_tuning.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

ClusterSpec rails() {
  ClusterSpec spec;
  spec.topology = "rail-optimized";
  spec.gpus = 512;
  spec.gpus_per_tor = 16;
  spec.tor_uplinks = 4;  // so that they can bind
  spec.gpus_per_pod = 256;
  spec.pod_oversubscription = 8;
  return spec;
}

std::map<LinkKind, std::pair<int, int64_t>> loads(const Fabric& fabric,
                                                  const std::vector<GpuId>& members) {
  NcclTuning tuning = h100_tuning("2.20");
  tuning.has_in_network = true;
  const CollectivePlan plan = plan_collective(CollectiveKind::kAllReduce, gibibytes(4),
                                              group_shape(fabric, members), tuning);
  EXPECT_EQ(plan.algorithm, Algorithm::kCollNet);
  std::vector<Crossing> crossings;
  append_group_path(fabric, members, plan, crossings);
  std::map<LinkKind, std::pair<int, int64_t>> sums;  // links, crossings
  for (const Crossing& crossing : crossings) {
    auto& [links, count] = sums[fabric.links()[crossing.link].kind];
    ++links;
    count += crossing.count;
  }
  return sums;
}

// 32 hosts in four groups of leaves, two pods: a sum of each leaf and of each pod, however many
// members there are below.
TEST(SumsInTheSwitches, go_up_and_down_every_switch_once) {
  const ClusterSpec spec = rails();
  const Fabric fabric = find_topology(spec.topology)->build(spec);
  std::vector<GpuId> rail, all;
  for (size_t gpu = 0; gpu < 512; ++gpu) {
    all.emplace_back(gpu);
    if (gpu % 8 == 3) rail.emplace_back(gpu);
  }
  auto one = loads(fabric, rail);
  EXPECT_EQ(one[LinkKind::kNicToTor], std::pair(128, int64_t{128}));
  EXPECT_EQ(one[LinkKind::kTorToPod], std::pair(8, int64_t{8}));
  EXPECT_EQ(one[LinkKind::kPodToCore], std::pair(4, int64_t{4}));
  auto eight = loads(fabric, all);
  EXPECT_EQ(eight[LinkKind::kTorToPod], std::pair(64, int64_t{64}));
  EXPECT_EQ(eight[LinkKind::kPodToCore], std::pair(4, int64_t{4 * 8}));
}

TEST(SumsInTheSwitches, stay_below_the_switch_that_has_all_members) {
  const ClusterSpec spec = rails();
  const Fabric fabric = find_topology(spec.topology)->build(spec);
  auto one = loads(fabric, {GpuId(0), GpuId(8), GpuId(16)});
  EXPECT_FALSE(one.contains(LinkKind::kTorToPod));
  auto pod = loads(fabric, {GpuId(0), GpuId(8), GpuId(128), GpuId(136)});
  EXPECT_EQ(pod[LinkKind::kTorToPod], std::pair(4, int64_t{4}));
  EXPECT_FALSE(pod.contains(LinkKind::kPodToCore));
}

}  // namespace
}  // namespace herdsim

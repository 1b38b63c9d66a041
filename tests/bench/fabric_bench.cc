// Goals of fabric and collectives: building a million GPUs, the paths of every group of a large
// job, one plan.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_tuning.h"
#include "topologies/cluster.h"
#include "topologies/link_capacity.h"

namespace herdsim {
namespace {

ClusterSpec million_gpus() {
  ClusterSpec spec;
  spec.topology = "clos3";
  spec.gpus = 1 << 20;
  return spec;
}

// Goal: 0.3 s and 300 MB.
void build_million_gpus(benchmark::State& state) {
  const ClusterSpec spec = million_gpus();
  size_t memory = 0;
  for (auto _ : state) {
    const Fabric fabric = find_topology(spec.topology)->build(spec);
    memory = fabric.links().size() + fabric.nodes().size() * sizeof(Node);
    benchmark::DoNotOptimize(fabric.links().size());
  }
  state.counters["goal_s"] = 0.3;
  state.counters["MB"] = static_cast<double>(memory) * 1e-6;
  state.counters["goal_MB"] = 300;
}
BENCHMARK(build_million_gpus)->Unit(benchmark::kMillisecond);

void capacities_of_million_gpus(benchmark::State& state) {
  const ClusterSpec spec = million_gpus();
  const Fabric fabric = find_topology(spec.topology)->build(spec);
  for (auto _ : state) {
    benchmark::DoNotOptimize(link_capacities(fabric, spec, {}).size());
  }
}
BENCHMARK(capacities_of_million_gpus)->Unit(benchmark::kMillisecond);

// Shapes and paths of groups that cover a million GPUs once. Arguments: members of a group, GPUs
// between members. Goal: 100 ms.
void paths_of_million_members(benchmark::State& state) {
  const ClusterSpec spec = million_gpus();
  const Fabric fabric = find_topology(spec.topology)->build(spec);
  const auto members = static_cast<size_t>(state.range(0));
  const auto stride = static_cast<size_t>(state.range(1));
  const CollectivePlan plan{.nic_crossings = members <= 8 ? 0 : 1,
                            .nvlink_crossings = stride >= 8 ? 0 : 1};
  std::vector<GpuId> group(members);
  std::vector<Crossing> path;
  for (auto _ : state) {
    int64_t nodes = 0;
    for (size_t block = 0; block < fabric.gpus(); block += members * stride) {
      for (size_t first = block; first < block + stride; ++first) {
        for (size_t i = 0; i < members; ++i) group[i] = GpuId(first + i * stride);
        nodes += group_shape(fabric, group).nodes;
        path.clear();
        append_group_path(fabric, group, plan, path);
        benchmark::DoNotOptimize(path.data());
      }
    }
    benchmark::DoNotOptimize(nodes);
  }
  state.counters["goal_ms"] = 100;
}
BENCHMARK(paths_of_million_members)
    ->Args({8, 1})        // tensor groups
    ->Args({128, 128})    // data-parallel rings
    ->Args({512, 1})      // whole hosts
    ->Args({1 << 20, 1})  // everybody
    ->Unit(benchmark::kMillisecond);

// Goal: 1 us.
void plan_one_collective(benchmark::State& state) {
  const NcclTuning tuning = h100_tuning("2.20");
  GroupShape group{.ranks = 128 * state.range(0), .nodes = 128, .farthest = HopClass::kCrossPod};
  group.edges[static_cast<size_t>(HopClass::kSamePod)] = 122;
  group.edges[static_cast<size_t>(HopClass::kCrossPod)] = 6;
  int64_t size = 1 << 20;
  for (auto _ : state) {
    size += 4096;
    benchmark::DoNotOptimize(
        plan_collective(CollectiveKind::kAllReduce, bytes(size), group, tuning));
    benchmark::DoNotOptimize(
        plan_collective(CollectiveKind::kAllGather, bytes(size), group, tuning));
  }
  state.SetItemsProcessed(2 * state.iterations());
  state.counters["goal_ns_a_plan"] = 1000;
}
BENCHMARK(plan_one_collective)->Arg(1)->Arg(8);

}  // namespace
}  // namespace herdsim

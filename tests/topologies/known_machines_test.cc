// Topologies with the figures of machines that are known: counts of switches and cables, which GPUs meet where.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/fabric/graph_algorithms.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

ClusterSpec meta_spec() {
  ClusterSpec spec;  // the defaults are Meta's cluster
  spec.topology = "clos3";
  spec.gpus = 24576;
  return spec;
}

TEST(Clos3, default_is_metas_24k_cluster) {
  const TopologyFacts facts = find_topology("clos3")->facts(meta_spec());
  EXPECT_EQ(facts.hosts, 3072);
  EXPECT_EQ(facts.tors, 1536);
  EXPECT_EQ(facts.pods, 8);
  EXPECT_NEAR(facts.oversubscription, 7.0, 0.01);
  // A pod uplink carries 21.9 TB/s, full bisection inside the pod half of 3,072 NICs.
  EXPECT_NEAR(facts.cluster_bisection.gigabytes_per_second(), 4 * 21'943, 50);
  EXPECT_EQ(facts.pod_bisection, gigabits_per_second(400) * 1536);
}

// Al-Fares et al., SIGCOMM 2008: switches of k ports make k^3 / 4 hosts out of 5 k^2 / 4 switches,
// every layer at full bisection.
TEST(FatTree, has_the_counts_of_its_radix) {
  for (const int64_t k : {4, 8, 16, 64}) {
    ClusterSpec spec;
    spec.topology = "fat-tree";
    spec.gpus_per_host = 2;
    spec.switch_ports = k;
    spec.gpus = k * k * k / 4;
    spec.pod_oversubscription = 1;
    const TopologyFacts facts = find_topology("fat-tree")->facts(spec);
    EXPECT_EQ(facts.pods, k);
    EXPECT_EQ(facts.tors, k * k / 2);
    EXPECT_EQ(facts.pod_switches, k * k / 2);
    EXPECT_EQ(facts.core_switches, k * k / 4);
    EXPECT_EQ(facts.cluster_bisection, spec.nic * (spec.gpus / 2));
    EXPECT_EQ(facts.oversubscription, 1);
    EXPECT_EQ(facts.diameter, 6);
  }
}

TEST(MultiPlane, gives_a_nic_a_port_on_a_tor_of_every_plane) {
  ClusterSpec spec;
  spec.topology = "multi-plane";
  spec.gpus = 2048;
  spec.gpus_per_tor = 256;
  spec.tor_uplinks = 256;
  for (const int64_t planes : {0, 2, 4, 8}) {
    spec.planes = planes;
    const TopologyFacts facts = find_topology("multi-plane")->facts(spec);
    const int64_t expected = planes == 0 ? 8 : planes;
    EXPECT_EQ(facts.planes, expected);
    EXPECT_EQ(facts.tors, 8 * expected);
    EXPECT_EQ(facts.nic_links, 2048 * expected);
    EXPECT_EQ(facts.pods, 1);
    EXPECT_EQ(facts.cluster_bisection, spec.nic * 1024);
    EXPECT_EQ(facts.diameter, 4);
  }
}

// Racks of 72 GPUs in 18 trays of four: NIC i of every tray meets the others of its number.
TEST(Rails, may_be_fewer_than_the_gpus_of_a_host) {
  ClusterSpec spec;
  spec.topology = "rail-optimized";
  spec.gpus = 1152;
  spec.gpus_per_host = 72;
  spec.rails = 4;
  spec.gpus_per_tor = 144;
  spec.gpus_per_pod = 1152;
  spec.tor_uplinks = 144;
  const Fabric fabric = find_topology("rail-optimized")->build(spec);
  EXPECT_EQ(find_topology("rail-optimized")->facts(spec).tors, 8);
  for (size_t gpu = 0; gpu < 576; gpu += 7) {
    EXPECT_EQ(fabric.tor_of(GpuId(gpu)), fabric.tor_of(GpuId(gpu % 4)));
    EXPECT_NE(fabric.tor_of(GpuId(gpu)), fabric.tor_of(GpuId(576 + gpu % 4)));
  }
  spec.rails = 5;
  Faults faults;
  append_cluster_faults(spec, "", faults);
  EXPECT_FALSE(faults.empty());
}

// NVIDIA DGX SuperPOD reference architecture, "Larger SuperPOD component counts" (32 hosts a
// scalable unit).
TEST(RailOptimized, switch_and_cable_counts_are_those_of_the_superpod_table) {
  struct Row {
    int64_t units, leaf, spine, core, node_leaf, leaf_spine, spine_core;
  };
  for (const Row& row :
       {Row{4, 32, 16, 0, 1024, 1024, 0}, Row{8, 64, 32, 0, 2048, 2048, 0},
        Row{16, 128, 128, 64, 4096, 4096, 4096}, Row{32, 256, 256, 128, 8192, 8192, 8192},
        Row{64, 512, 512, 256, 16384, 16384, 16384}}) {
    ClusterSpec spec;
    spec.topology = "rail-optimized";
    spec.gpus = row.units * 256;
    spec.gpus_per_tor = 32;
    spec.tor_uplinks = 32;
    spec.gpus_per_pod = 2048;  // as many units as two layers of 64-port switches join
    spec.pod_oversubscription = 1;
    const TopologyFacts facts = find_topology("rail-optimized")->facts(spec);
    EXPECT_EQ(facts.tors, row.leaf) << row.units << " units";
    EXPECT_EQ(facts.pod_switches, row.spine) << row.units << " units";
    EXPECT_EQ(facts.core_switches, row.core) << row.units << " units";
    EXPECT_EQ(facts.nic_links, row.node_leaf);
    EXPECT_EQ(facts.tor_uplinks, row.leaf_spine);
    EXPECT_EQ(facts.pod_uplinks, row.spine_core);
    EXPECT_EQ(facts.oversubscription, 1.0);
  }
}

TEST(RailOptimized, gpus_of_one_number_meet_under_one_leaf) {
  ClusterSpec spec;
  spec.topology = "rail-optimized";
  spec.gpus = 1024;
  spec.gpus_per_tor = 32;
  spec.tor_uplinks = 32;
  spec.gpus_per_pod = 512;
  const Fabric fabric = find_topology("rail-optimized")->build(spec);
  EXPECT_EQ(fabric.hop_class(GpuId(3), GpuId(3 + 8 * 31)), HopClass::kSameTor);
  EXPECT_EQ(fabric.hop_class(GpuId(3), GpuId(4 + 8 * 31)), HopClass::kSamePod);
  EXPECT_EQ(fabric.hop_class(GpuId(3), GpuId(3 + 8 * 32)), HopClass::kSamePod);
  EXPECT_EQ(fabric.hop_class(GpuId(3), GpuId(3 + 8 * 64)), HopClass::kCrossPod);
}

// Alibaba HPN 7.0 (SIGCOMM 2024): segments of 1,024 GPUs under 16 ToRs, pods of 15 segments, agg to
// core 15:1.
TEST(DualPlane, has_two_tors_a_rail_that_share_its_nics) {
  ClusterSpec spec;
  spec.topology = "dual-plane";
  spec.gpus = 2 * 15360;
  spec.gpus_per_tor = 128;
  spec.tor_uplinks = 120;
  spec.gpus_per_pod = 15360;
  spec.pod_oversubscription = 15;
  const Topology& row = *find_topology(spec.topology);
  const TopologyFacts facts = row.facts(spec);
  EXPECT_EQ(facts.tors, 2 * 15 * 16);
  EXPECT_EQ(facts.nic_links, 2 * spec.gpus);
  EXPECT_EQ(facts.pod_uplinks, 2 * 1024);
  const Fabric fabric = row.build(spec);
  const Node& nic = fabric.nodes()[fabric.nic_of(GpuId(0))];
  EXPECT_EQ(fabric.links()[nic.up].width, 2U);
  EXPECT_EQ(fabric.links()[nic.up].capacity, gigabits_per_second(400));
  EXPECT_EQ(fabric.hop_class(GpuId(0), GpuId(8 * 127)), HopClass::kSameTor);
}

TEST(ClusterFaults, reports_every_fault_at_once) {
  ClusterSpec spec = meta_spec();
  spec.topology = "clos";
  spec.gpus = 24577;
  spec.gpus_per_tor = 12;
  spec.nic_efficiency = 1.2;
  spec.pod_oversubscription = 0;
  spec.degraded = {{.gpu = 30000, .nic_factor = 1.5}};
  Faults faults;
  append_cluster_faults(spec, "cluster.", faults);
  std::vector<std::string> fields;
  for (const Fault& fault : faults.list()) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{
                        "cluster.topology", "cluster.gpus", "cluster.gpus_per_tor",
                        "cluster.pod_oversubscription", "cluster.nic_efficiency",
                        "cluster.degraded[0].gpu", "cluster.degraded[0].nic_factor"}));
  EXPECT_EQ(faults.list().front().nearest, "clos3");
}

}  // namespace
}  // namespace herdsim

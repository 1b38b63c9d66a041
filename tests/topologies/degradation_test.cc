// What degraded parts leave of the links, on every topology.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "topologies/cluster.h"
#include "topologies/link_capacity.h"

namespace herdsim {
namespace {

ClusterSpec cluster(const Topology& row) {
  ClusterSpec spec;
  spec.topology = row.name;
  spec.gpus = 512;
  spec.gpus_per_tor = row.has_rails ? 8 : 16;
  spec.gpus_per_pod = 128;
  spec.pod_oversubscription = 2;
  spec.switch_ports = 16;
  spec.nic_efficiency = 1;
  return spec;
}

struct Machine {
  explicit Machine(const ClusterSpec& s)
      : spec(s),
        fabric(find_topology(spec.topology)->build(spec)),
        placement(place_ranks(spec, spec.gpus, 1)),
        conditions(link_conditions(fabric, spec, placement)) {}
  double nic_left(size_t gpu) const {
    const Node& nic = fabric.nodes()[fabric.nic_of(GpuId(gpu))];
    EXPECT_EQ(conditions.capacity[nic.up], conditions.capacity[nic.down()]);
    return left(nic.up);
  }
  double left(LinkId link) const {
    return conditions.capacity[link].gigabytes_per_second() /
           fabric.links()[link].capacity.gigabytes_per_second();
  }

  const ClusterSpec spec;
  const Fabric fabric;
  const TypedVector<RankId, GpuId> placement;
  const LinkConditions conditions;
};

// Every kind of part, one at a time.
std::vector<Degradation> parts() {
  return {{.gpu = 37, .nic_factor = 0.4},    {.gpu = 37, .nic_factor = 0},
          {.tor = 3, .uplink_factor = 0.5},  {.tor = 3, .down = true},
          {.pod = 1, .uplink_factor = 0.25}, {.plane = 0, .down = true}};
}

TEST(Degradation, only_slows_links_and_lists_all_that_it_slows) {
  for (const Topology& row : topologies()) {
    for (const Degradation& part : parts()) {
      ClusterSpec spec = cluster(row);
      spec.degraded = {part};
      Faults faults;
      append_cluster_faults(spec, "", faults);
      if (!faults.empty()) continue;  // one pod has no uplinks
      const Machine m(spec);
      int slowed = 0;
      for (size_t l = 0; l < m.fabric.links().size(); ++l) {
        const LinkId link(l);
        EXPECT_LE(m.conditions.capacity[link], m.fabric.links()[link].capacity);
        const bool is_slow = m.conditions.capacity[link] < m.fabric.links()[link].capacity;
        slowed += is_slow ? 1 : 0;
        const auto& listed = m.conditions.impaired;
        if (is_slow) {
          EXPECT_TRUE(std::binary_search(listed.begin(), listed.end(), link)) << row.name;
        }
      }
      EXPECT_GT(slowed, 0) << row.name;
      EXPECT_TRUE(m.conditions.changes.empty());
    }
  }
}

// NCCL sets up its connections on the NIC beside a dead one: the two GPUs of a PCIe switch share
// it.
TEST(Degradation, a_nic_that_is_down_from_the_start_halves_the_one_beside_it) {
  ClusterSpec spec = cluster(*find_topology("clos3"));
  spec.degraded = {{.gpu = 37, .nic_factor = 0}};
  const Machine m(spec);
  EXPECT_DOUBLE_EQ(m.nic_left(37), 0.5);
  EXPECT_DOUBLE_EQ(m.nic_left(36), 0.5);
  EXPECT_DOUBLE_EQ(m.nic_left(38), 1.0);
  spec.degraded.push_back({.gpu = 36, .nic_factor = 0});
  const Machine both(spec);
  EXPECT_EQ(both.nic_left(36), 0);
  EXPECT_EQ(both.nic_left(37), 0);
}

// Alibaba HPN 7.0: training halts where the only ToR of a NIC is lost, and loses 6.25 % where a
// host of eight two-port NICs has lost one of its sixteen ports.
TEST(Degradation, a_lost_tor_halts_its_gpus_on_one_plane_and_costs_a_sixteenth_on_two) {
  ClusterSpec one = cluster(*find_topology("clos3"));
  one.degraded = {{.tor = 3, .down = true}};
  const Machine halted(one);
  for (size_t gpu = 0; gpu < 64; ++gpu) {
    EXPECT_EQ(halted.nic_left(gpu), gpu / 16 == 3 ? 0 : 1) << gpu;
  }
  ClusterSpec two = cluster(*find_topology("dual-plane"));
  two.degraded = {{.tor = 3, .down = true}};
  const Machine carried(two);
  for (size_t gpu = 0; gpu < 64; ++gpu) EXPECT_DOUBLE_EQ(carried.nic_left(gpu), 1 - 0.0625) << gpu;
  for (size_t gpu = 64; gpu < 512; ++gpu) EXPECT_DOUBLE_EQ(carried.nic_left(gpu), 1) << gpu;
}

TEST(Degradation, a_port_of_a_nic_costs_the_host_a_sixteenth_on_two_planes) {
  ClusterSpec spec = cluster(*find_topology("dual-plane"));
  spec.degraded = {{.gpu = 37, .nic_factor = 0.5}};
  const Machine m(spec);
  for (size_t gpu = 32; gpu < 40; ++gpu) EXPECT_DOUBLE_EQ(m.nic_left(gpu), 1 - 0.0625);
  EXPECT_DOUBLE_EQ(m.nic_left(40), 1);
}

TEST(Degradation, a_plane_that_is_down_takes_its_part_of_every_nic) {
  for (const Topology& row : topologies()) {
    if (row.is_mesh) continue;
    ClusterSpec spec = cluster(row);
    spec.degraded = {{.plane = 0, .down = true}};
    const Machine m(spec);
    const double left = 1 - 1.0 / static_cast<double>(row.facts(spec).planes);
    for (size_t gpu = 0; gpu < 512; gpu += 13) EXPECT_DOUBLE_EQ(m.nic_left(gpu), left) << row.name;
  }
}

TEST(Degradation, a_flap_takes_a_link_away_and_gives_it_back) {
  ClusterSpec spec = cluster(*find_topology("clos3"));
  spec.degraded = {{.gpu = 5, .nic_factor = 0, .at = seconds(1), .lasts = seconds(2)},
                   {.gpu = 5, .nic_factor = 0.5, .at = seconds(2), .lasts = seconds(2)}};
  const Machine m(spec);
  EXPECT_DOUBLE_EQ(m.nic_left(5), 1);
  const Node& nic = m.fabric.nodes()[m.fabric.nic_of(GpuId(5))];
  std::vector<std::pair<double, double>> up;
  for (const CapacityChange& change : m.conditions.changes) {
    EXPECT_TRUE(change.link == nic.up || change.link == nic.down());
    if (change.link == nic.up) {
      up.emplace_back(change.at.seconds(), change.capacity.gigabytes_per_second());
    }
  }
  EXPECT_EQ(up, (std::vector<std::pair<double, double>>{{1, 0}, {3, 25}, {4, 50}}));
}

TEST(Degradation, faults_name_the_field_and_what_is_allowed) {
  const auto first_fault = [](const Degradation& part) {
    ClusterSpec spec = cluster(*find_topology("clos3"));
    spec.degraded = {part};
    Faults faults;
    append_cluster_faults(spec, "", faults);
    return faults.empty() ? std::string() : faults.list().front().field;
  };
  EXPECT_EQ(first_fault({}), "degraded[0]");
  EXPECT_EQ(first_fault({.gpu = 1, .tor = 2, .down = true}), "degraded[0]");
  EXPECT_EQ(first_fault({.gpu = 512, .nic_factor = 0.5}), "degraded[0].gpu");
  EXPECT_EQ(first_fault({.tor = 32, .down = true}), "degraded[0].tor");
  EXPECT_EQ(first_fault({.pod = 4, .uplink_factor = 0.5}), "degraded[0].pod");
  EXPECT_EQ(first_fault({.plane = 1, .down = true}), "degraded[0].plane");
  EXPECT_EQ(first_fault({.nic_factor = 0.5, .tor = 1}), "degraded[0].nic_factor");
  EXPECT_EQ(first_fault({.gpu = 1, .uplink_factor = 0.5}), "degraded[0].uplink_factor");
  EXPECT_EQ(first_fault({.gpu = 1, .down = true}), "degraded[0].down");
  EXPECT_EQ(first_fault({.gpu = 1, .compute_factor = 0.9, .at = seconds(1)}), "degraded[0].at_s");
  EXPECT_EQ(first_fault({.tor = 31, .down = true}), "");
}

}  // namespace
}  // namespace herdsim

// Storage servers beside every topology: the built graph agrees with the closed forms, and changes
// nothing else.
#include "topologies/storage_network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/fabric/graph_algorithms.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

ClusterSpec without_storage(const Topology& row) {
  ClusterSpec spec;
  spec.topology = row.name;
  spec.gpus = 192;
  spec.gpus_per_host = 4;
  spec.gpus_per_tor = 8;
  spec.gpus_per_pod = 64;
  spec.tor_uplinks = 4;
  spec.pod_oversubscription = 2;
  spec.switch_ports = 16;
  spec.local_lanes = 3;
  if (row.name == "torus") spec.torus = {12, 4, 4};
  if (row.name == "graph") {
    spec.network.switches = {{"a"}, {"b"}};
    spec.network.hosts = {{"left", 24}, {"right", 24}};
    spec.network.links = {{.from = "left", .to = "a"},
                          {.from = "right", .to = "b"},
                          {.from = "a", .to = "b", .lanes = 8}};
  }
  return spec;
}

struct Storage {
  StorageNetwork::Path path;
  int64_t servers, hosts_per_switch;
  double oversubscription;
};

// Calls check(plain spec, spec) for every row and kind of storage.
template <class Check>
void for_every_storage(const Check& check) {
  constexpr auto kFrontend = StorageNetwork::Path::kFrontend,
                 kTraining = StorageNetwork::Path::kTraining;
  int built = 0;
  for (const Topology& row : topologies()) {
    const ClusterSpec plain = without_storage(row);
    for (const Storage& s : {Storage{kFrontend, 10, 8, 1},
                             {kFrontend, 1000, 8, 1},
                             {kFrontend, 1000, 10, 3},
                             {kFrontend, 1000, 100, 4},
                             {kTraining, 10, 1, 1},
                             {kTraining, 100'000, 1, 1}}) {
      ClusterSpec spec = plain;
      spec.storage.path = s.path;
      spec.storage.servers = s.servers;
      spec.storage.hosts_per_switch = s.hosts_per_switch;
      spec.storage.oversubscription = s.oversubscription;
      Faults faults;
      append_cluster_faults(spec, "", faults);
      if (!faults.empty()) {
        EXPECT_TRUE(row.is_mesh && s.path == kTraining)
            << row.name << ": " << faults.list().front().field;
        continue;
      }
      ++built;
      SCOPED_TRACE(std::string(row.name) + ", " + std::to_string(s.servers) + " servers, " +
                   std::to_string(s.hosts_per_switch) + " hosts a switch");
      check(row, plain, spec);
    }
  }
  EXPECT_GE(built, 4 * 8 + 2 * 5);
}

int64_t nodes_of(const Fabric& fabric, NodeKind kind) {
  int64_t count = 0;
  for (const Node& node : fabric.nodes()) count += node.kind == kind ? node.count : 0;
  return count;
}

int64_t lanes_of(const Fabric& fabric, LinkKind kind) {
  int64_t both_ways = 0;
  for (const Link& link : fabric.links()) both_ways += link.kind == kind ? link.width : 0;
  return both_ways / 2;
}

TEST(StorageNetwork, has_the_devices_and_cables_that_the_closed_form_says) {
  for_every_storage([](const Topology& row, const ClusterSpec&, const ClusterSpec& spec) {
    const Fabric fabric = row.build(spec);
    const TopologyFacts facts = row.facts(spec);
    EXPECT_EQ(facts.storage_servers, nodes_of(fabric, NodeKind::kStorageServer));
    EXPECT_EQ(facts.storage_servers, nodes_of(fabric, NodeKind::kDisks));
    EXPECT_EQ(facts.storage_servers, lanes_of(fabric, LinkKind::kStorageServer));
    EXPECT_EQ(facts.frontend_ports, nodes_of(fabric, NodeKind::kFrontendPort));
    EXPECT_EQ(facts.frontend_ports, lanes_of(fabric, LinkKind::kFrontendPort));
    EXPECT_EQ(facts.frontend_switches, nodes_of(fabric, NodeKind::kFrontendSwitch));
    EXPECT_EQ(facts.frontend_uplinks, lanes_of(fabric, LinkKind::kFrontendUplink));
    const bool own = spec.storage.path == StorageNetwork::Path::kFrontend;
    EXPECT_EQ(facts.frontend_ports, own ? facts.hosts : 0);
    EXPECT_EQ(network_components(fabric), own ? 2 : 1);
  });
}

// From all ports (or NICs) to the servers.
TEST(StorageNetwork, carries_the_maximum_flow_between_hosts_and_servers) {
  for_every_storage([](const Topology& row, const ClusterSpec&, const ClusterSpec& spec) {
    const Fabric fabric = row.build(spec);
    const size_t source = fabric.nodes().size();
    std::vector<FlowEdge> edges;
    for (const Link& link : fabric.links())
      edges.push_back({link.from.index(), link.to.index(), link.capacity});
    const bool own = spec.storage.path == StorageNetwork::Path::kFrontend;
    for (size_t n = 0; n < source; ++n) {
      const NodeKind kind = fabric.nodes()[NodeId(n)].kind;
      if (kind == (own ? NodeKind::kFrontendPort : NodeKind::kNic)) {
        edges.push_back({source, n, Bandwidth::from_bytes_per_second(int64_t{1} << 50)});
      }
    }
    EXPECT_EQ(max_flow(source + 1, edges, source, fabric.storage()->servers.index()),
              row.facts(spec).storage_bandwidth);
  });
}

TEST(StorageNetwork, leaves_the_network_of_the_gpus_as_it_is) {
  for_every_storage([](const Topology& row, const ClusterSpec& plain, const ClusterSpec& spec) {
    const Fabric before = row.build(plain), after = row.build(spec);
    ASSERT_FALSE(before.storage());
    ASSERT_LT(before.links().size(), after.links().size());
    for (size_t l = 0; l < before.links().size(); ++l) {
      const Link a = before.links()[LinkId(l)], b = after.links()[LinkId(l)];
      ASSERT_TRUE(a.from == b.from && a.to == b.to && a.capacity == b.capacity && a.kind == b.kind)
          << l;
      ASSERT_EQ(before.can_bind(LinkId(l)), after.can_bind(LinkId(l)));
    }
    TopologyFacts facts = row.facts(spec);
    EXPECT_EQ(facts.diameter, row.facts(plain).diameter);
    EXPECT_EQ(facts.cluster_bisection, row.facts(plain).cluster_bisection);
  });
}

// Writes leave by the host's own way and end in the disks; reads take it back. Neither touches what
// is not on it.
TEST(StorageNetwork, routes_join_every_gpu_with_the_disks) {
  for_every_storage([](const Topology& row, const ClusterSpec&, const ClusterSpec& spec) {
    const Fabric fabric = row.build(spec);
    const StoragePart& part = *fabric.storage();
    for (size_t g = 0; g < fabric.gpus(); g += 5) {
      std::vector<LinkId> write, read;
      fabric.append_store_route(GpuId(g), StoreAccess::kWrite, write);
      fabric.append_store_route(GpuId(g), StoreAccess::kRead, read);
      ASSERT_EQ(write.size(), read.size());
      NodeId at = part.over_training ? fabric.node_of(GpuId(g)) : part.port_of(GpuId(g));
      for (const LinkId link : write) {
        ASSERT_EQ(fabric.links()[link].from, at);
        at = fabric.links()[link].to;
      }
      ASSERT_EQ(at, part.disks);
      ASSERT_EQ(write.back(), read.back());
      for (size_t i = 0; i + 1 < write.size(); ++i) {
        ASSERT_EQ(fabric.links()[write[i]].from, fabric.links()[read[i]].to);
        ASSERT_EQ(fabric.links()[write[i]].to, fabric.links()[read[i]].from);
      }
    }
  });
}

TEST(StorageNetwork, says_what_is_wrong_with_it) {
  ClusterSpec spec = without_storage(*find_topology("dragonfly"));
  spec.storage.path = StorageNetwork::Path::kTraining;
  spec.storage.servers = 4;
  Faults faults;
  append_cluster_faults(spec, "cluster.", faults);
  ASSERT_EQ(faults.list().size(), 1u);
  EXPECT_EQ(faults.list().front().field, "cluster.storage_network.path");
  EXPECT_EQ(faults.list().front().allowed, "FRONTEND");
  ClusterSpec wide = without_storage(*find_topology("clos3"));
  wide.storage.servers = 1'000'000;
  wide.storage.server = wide.storage.host = gigabits_per_second(100'000'000);
  Faults too_wide;
  append_cluster_faults(wide, "", too_wide);
  ASSERT_EQ(too_wide.list().size(), 1u);
  EXPECT_EQ(too_wide.list().front().field, "storage_network.servers");
}

}  // namespace
}  // namespace herdsim

// Networks written out by hand: what is built, what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/fabric/graph_algorithms.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

// Two racks of two hosts with two GPUs, a leaf each; two spines.
ClusterSpec small() {
  ClusterSpec spec;
  spec.topology = "graph";
  spec.gpus = 8;
  spec.gpus_per_host = 2;
  spec.network.switches = {{"leaf0"}, {"leaf1"}, {"spine0"}, {"spine1"}};
  spec.network.hosts = {{"rack0", 2}, {"rack1", 2}};
  spec.network.links = {{.from = "rack0", .to = "leaf0"},
                        {.from = "leaf1", .to = "rack1"},
                        {.from = "leaf0", .to = "spine0", .lanes = 2},
                        {.from = "leaf0", .to = "spine1"},
                        {.from = "leaf1", .to = "spine0", .lanes = 2},
                        {.from = "spine1", .to = "leaf1", .lane = gigabits_per_second(100)}};
  return spec;
}

std::string faults_of(const ClusterSpec& spec) {
  Faults faults;
  append_cluster_faults(spec, "", faults);
  std::string all;
  for (const Fault& fault : faults.list()) all += fault.field + ": " + fault.problem + "\n";
  return all;
}

TEST(NetworkGraph, is_built_as_it_is_written) {
  ASSERT_EQ(faults_of(small()), "");
  const TopologyFacts facts = find_topology("graph")->facts(small());
  EXPECT_EQ(facts.tors, 4);
  EXPECT_EQ(facts.nic_links, 8);
  EXPECT_EQ(facts.switch_links, 6);
  EXPECT_EQ(facts.degree, 4 + 3);
  EXPECT_EQ(facts.diameter, 4);
  // Two lanes of 400 Gb/s over one spine and the narrower end, 100 Gb/s, over the other.
  EXPECT_EQ(facts.cluster_bisection, gigabits_per_second(900));
  EXPECT_DOUBLE_EQ(facts.oversubscription, 1600.0 / 900);
}

// Rails: NIC 0 of all hosts on one leaf, NIC 1 on the other.
TEST(NetworkGraph, cables_one_nic_of_every_host_where_a_link_says_so) {
  ClusterSpec spec = small();
  spec.network.links[0] = {.from = "rack0", .to = "leaf0", .nic = 0};
  spec.network.links[1] = {.from = "rack1", .to = "leaf0", .nic = 0};
  spec.network.links.push_back({.from = "leaf1", .to = "rack0", .nic = 1});
  spec.network.links.push_back({.from = "leaf1", .to = "rack1", .nic = 1});
  ASSERT_EQ(faults_of(spec), "");
  const Fabric fabric = find_topology("graph")->build(spec);
  for (size_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_EQ(fabric.tor_of(GpuId(gpu)), fabric.tor_of(GpuId(gpu % 2)));
  }
  EXPECT_EQ(fabric.hop_class(GpuId(0), GpuId(6)), HopClass::kSameTor);
  EXPECT_EQ(fabric.hop_class(GpuId(0), GpuId(7)), HopClass::kSamePod);
}

TEST(NetworkGraph, spreads_destinations_over_equally_short_paths) {
  ClusterSpec spec = small();
  const Fabric fabric = find_topology("graph")->build(spec);
  std::map<LinkId, int> uses;
  for (size_t to = 4; to < 8; ++to) {
    std::vector<LinkId> route;
    fabric.append_route_above_tors(GpuId(0), GpuId(to), route);
    ASSERT_EQ(route.size(), 2U);
    ++uses[route.front()];
  }
  EXPECT_EQ(uses.size(), 2U);
  for (const auto& [link, count] : uses) EXPECT_EQ(count, 2);
}

TEST(NetworkGraph, lists_every_fault) {
  struct Case {
    std::string expected;
    std::function<void(NetworkGraph&)> damage;
  };
  const std::vector<Case> cases = {
      {"network.links[2].to: there is no \"spine\"", [](auto& n) { n.links[2].to = "spine"; }},
      {"network.links[0].from: there is no \"\"", [](auto& n) { n.links[0].from = ""; }},
      {"network.switches[1].name: \"leaf0\" is the name of another",
       [](auto& n) { n.switches[1].name = "leaf0"; }},
      {"network.hosts[1].name: \"spine0\" is the name of another",
       [](auto& n) { n.hosts[1].name = "spine0"; }},
      {"network.switches[0].name: is empty", [](auto& n) { n.switches[0].name = ""; }},
      {"network.switches[3].count: 0 is not positive", [](auto& n) { n.switches[3].count = 0; }},
      {"network.hosts[1]: NIC 0 of host 0 of \"rack1\" is connected to nothing",
       [](auto& n) { n.links.erase(n.links.begin() + 1); }},
      {"network.hosts: are 3 hosts", [](auto& n) { n.hosts[1].count = 1; }},
      {"network.hosts: are more than 4 hosts", [](auto& n) { n.hosts[1].count = 1 << 30; }},
      {"network.links[6]: NIC 0 of host 0 of \"rack0\" already has a cable to \"leaf0\"",
       [](auto& n) { n.links.push_back({.from = "rack0", .to = "leaf1"}); }},
      {"network.links[0].nic: there is no NIC 2", [](auto& n) { n.links[0].nic = 2; }},
      {"network.links[2].nic: joins switches", [](auto& n) { n.links[2].nic = 0; }},
      {"network.links[3].lanes: 0 lanes", [](auto& n) { n.links[3].lanes = 0; }},
      {"network.links[2]: joins \"leaf0\" to itself", [](auto& n) { n.links[2].to = "leaf0"; }},
      {"network.links[0]: joins hosts to hosts", [](auto& n) { n.links[0].to = "rack1"; }},
      {"network.switches[1]: no route leads from \"leaf1\" to \"leaf0\"",
       [](auto& n) { n.links.resize(3); }},
      {"network: has no switch", [](auto& n) { n.switches.clear(); }},
      {"network: has no hosts", [](auto& n) { n.hosts.clear(); }},
      {"network.switches: 5000 entries", [](auto& n) { n.switches.resize(5000); }},
  };
  for (const Case& c : cases) {
    ClusterSpec spec = small();
    c.damage(spec.network);
    EXPECT_NE(faults_of(spec).find(c.expected), std::string::npos)
        << c.expected << " is missing in\n"
        << faults_of(spec);
  }
  // All at once.
  ClusterSpec spec = small();
  spec.network.switches[1].name = "leaf0";
  spec.network.links[2].to = "spine";
  spec.network.links[3].lanes = -1;
  const std::string all = faults_of(spec);
  for (const char* field : {"switches[1].name", "links[1].from", "links[2].to", "links[3].lanes"}) {
    EXPECT_NE(all.find(field), std::string::npos) << field << " in\n" << all;
  }
  spec = small();
  spec.topology = "clos3";
  EXPECT_NE(faults_of(spec).find("network: clos3 is not written out"), std::string::npos);
}

// Random damage to names, numbers and the list of links: a network is refused, or it is sound.
TEST(NetworkGraph, is_sound_or_refused_whatever_is_written) {
  int built = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
    ClusterSpec spec = small();
    NetworkGraph& n = spec.network;
    const std::vector<std::string> names = {"leaf0", "leaf1", "spine0", "spine1",
                                            "rack0", "rack1", "",       "x"};
    const std::vector<int64_t> numbers = {-1, 0, 1, 2, 3, int64_t{1} << 40, INT64_MAX, INT64_MIN};
    for (size_t k = 1 + below(3); k > 0; --k) {
      const size_t link = below(n.links.size());
      switch (below(8)) {
        case 0:
          n.links[link].from = names[below(names.size())];
          break;
        case 1:
          n.links[link].to = names[below(names.size())];
          break;
        case 2:
          n.links[link].nic = numbers[below(numbers.size())];
          break;
        case 3:
          n.links[link].lanes = numbers[below(numbers.size())];
          break;
        case 4:
          n.links.push_back(n.links[link]);
          break;
        case 5:
          if (n.links.size() > 1) n.links.erase(n.links.begin() + static_cast<ptrdiff_t>(link));
          break;
        case 6:
          n.hosts[below(2)].count = numbers[below(numbers.size())];
          break;
        case 7:
          n.switches[below(4)] = {names[below(names.size())], numbers[below(numbers.size())]};
          break;
      }
    }
    if (!faults_of(spec).empty()) {
      ++refused;
      continue;
    }
    ++built;
    const Fabric fabric = find_topology("graph")->build(spec);
    const TopologyFacts facts = find_topology("graph")->facts(spec);
    EXPECT_EQ(network_components(fabric), 1) << seed;
    EXPECT_EQ(network_diameter(fabric), facts.diameter) << seed;
    EXPECT_GT(facts.cluster_bisection, Bandwidth()) << seed;
  }
  EXPECT_GT(built, 300);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace herdsim

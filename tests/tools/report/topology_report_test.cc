#include "tools/report/topology_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace herdsim {
namespace {

using ::testing::HasSubstr;

ClusterSpec meta() {
  ClusterSpec spec;
  spec.name = "meta-24k";
  spec.topology = "clos3";
  spec.gpus = 24576;
  return spec;
}

ClusterSpec superpod(int64_t gpus) {
  ClusterSpec spec;
  spec.topology = "rail-optimized";
  spec.gpus = gpus;
  spec.gpus_per_tor = 32;
  spec.tor_uplinks = 32;
  spec.gpus_per_pod = 2048;
  spec.pod_oversubscription = 1;
  return spec;
}

TEST(TopologyReport, tells_the_figures_of_metas_cluster_in_80_columns) {
  const std::string table = topology_table(meta());
  for (const char* figure :
       {"24,576", "3,072", "1,536", "pod bisection", "76.8 TB/s", "87.8 TB/s"}) {
    EXPECT_THAT(table, HasSubstr(figure));
  }
  EXPECT_THAT(table, HasSubstr("cuts off 16 GPUs"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// 1,024 GPUs on any row.
ClusterSpec thousand(const Topology& row) {
  ClusterSpec spec = superpod(1024);
  spec.topology = row.name;
  if (row.name == "torus") spec.torus = {16, 8, 8};
  if (row.name == "dragonfly") spec.gpus_per_pod = 256;
  spec.local_lanes = 8;
  if (row.name == "graph") {
    spec.network.switches = {{"leaf \"a\""}, {"leaf b"}, {"spine", 2}};
    spec.network.hosts = {{"rack a", 64}, {"rack b", 64}};
    spec.network.links = {{.from = "rack a", .to = "leaf \"a\""},
                          {.from = "rack b", .to = "leaf b"},
                          {.from = "leaf \"a\"", .to = "spine", .lanes = 256},
                          {.from = "leaf b", .to = "spine", .lanes = 256}};
  }
  return spec;
}

TEST(TopologyReport, json_says_the_same_as_the_facts_of_every_row) {
  for (const Topology& row : topologies()) {
    const ClusterSpec spec = thousand(row);
    Faults faults;
    append_cluster_faults(spec, "", faults);
    ASSERT_TRUE(faults.empty()) << row.name << ": " << faults.list().front().field;
    const TopologyFacts facts = row.facts(spec);
    const auto parsed = nlohmann::json::parse(topology_json(spec));
    EXPECT_EQ(parsed["gpus"], facts.gpus);
    EXPECT_EQ(parsed["tors"], facts.tors);
    EXPECT_EQ(parsed["diameter_links"], facts.diameter);
    EXPECT_EQ(parsed["degree"], facts.degree);
    std::istringstream lines(topology_table(spec));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80U) << row.name << ": " << line;
    }
    EXPECT_EQ(parsed["cluster_bisection_bytes_per_second"],
              facts.cluster_bisection.bytes_per_second());
    int64_t tor_lanes = 0;
    for (const auto& layer : parsed["links"]) {
      if (layer["kind"] == "tor-pod") tor_lanes = layer["lanes"];
    }
    EXPECT_EQ(tor_lanes, facts.tor_uplinks) << row.name;
  }
}

// 32 spines carry a 2,048-GPU pod's traffic between leaves: one failing leaves 31/32 of it.
TEST(FailureDomains, a_spine_takes_its_share_and_a_leaf_its_gpus) {
  const ClusterSpec spec = superpod(2048);
  const Topology& row = *find_topology(spec.topology);
  const auto domains = failure_domains(row.build(spec), row.facts(spec));
  ASSERT_EQ(domains.size(), 4U);
  EXPECT_EQ(domains[0].gpus_cut_off, 1);
  EXPECT_EQ(domains[1].gpus_cut_off, 8);
  EXPECT_EQ(domains[2].kind, NodeKind::kTor);
  EXPECT_EQ(domains[2].gpus_cut_off, 32);
  EXPECT_EQ(domains[3].kind, NodeKind::kPod);
  EXPECT_EQ(domains[3].count, 32);
  EXPECT_EQ(domains[3].gpus_slowed, 2048);
  EXPECT_DOUBLE_EQ(domains[3].bandwidth_left, 31.0 / 32);
}

TEST(FailureDomains, one_tor_of_two_planes_halves_bandwidth_and_cuts_nobody_off) {
  ClusterSpec spec = superpod(2048);
  spec.topology = "dual-plane";
  const Topology& row = *find_topology(spec.topology);
  const auto domains = failure_domains(row.build(spec), row.facts(spec));
  ASSERT_EQ(domains.size(), 3U);
  EXPECT_EQ(domains[2].kind, NodeKind::kTor);
  EXPECT_EQ(domains[2].gpus_cut_off, 0);
  EXPECT_EQ(domains[2].gpus_slowed, 32);
  EXPECT_DOUBLE_EQ(domains[2].bandwidth_left, 0.5);
}

TEST(TopologyReport, graphviz_has_a_node_a_vertex_and_an_edge_a_pair_of_links) {
  ClusterSpec spec = meta();
  spec.gpus = 32;
  const std::string dot = topology_graphviz(spec);
  const Fabric fabric = find_topology(spec.topology)->build(spec);
  const auto count = [&dot](const std::string& what) {
    size_t n = 0;
    for (size_t at = dot.find(what); at != std::string::npos; at = dot.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count(" -- "), fabric.links().size() / 2);
  EXPECT_EQ(count("[label="), fabric.nodes().size() + fabric.links().size() / 2);
  EXPECT_EQ(count("16 x 50 GB/s"), 2U);
}

// Names and quotation marks as they were given.
TEST(TopologyReport, graphviz_names_the_switches_of_a_network_that_is_written_out) {
  ClusterSpec spec = thousand(*find_topology("graph"));
  spec.gpus = 16;
  spec.network.hosts = {{"rack a", 1}, {"rack b", 1}};
  const std::string dot = topology_graphviz(spec);
  EXPECT_THAT(dot, HasSubstr("[label=\"leaf \\\"a\\\"\"]"));
  EXPECT_THAT(dot, HasSubstr("[label=\"spine x 2\"]"));
  EXPECT_THAT(dot, HasSubstr("256 x 50 GB/s"));
}

}  // namespace
}  // namespace herdsim

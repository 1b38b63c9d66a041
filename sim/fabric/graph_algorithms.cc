#include "sim/fabric/graph_algorithms.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/visitors.hpp>
#include <vector>

namespace herdsim {
namespace {

bool is_network(const Link& link) {
  return link.kind != LinkKind::kNvLink && link.kind != LinkKind::kPcie;
}

using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;

Undirected network_graph(const Fabric& fabric) {
  Undirected graph(fabric.nodes().size());
  for (const Link& link : fabric.links()) {
    // One of the two directions is enough.
    if (link.kind != LinkKind::kNvLink && link.from < link.to) {
      boost::add_edge(link.from.index(), link.to.index(), graph);
    }
  }
  return graph;
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, int64_t,
        boost::property<boost::edge_residual_capacity_t, int64_t,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

void add_flow_edge(FlowGraph& graph, size_t from, size_t to, int64_t capacity) {
  const auto forward = boost::add_edge(from, to, graph).first;
  const auto backward = boost::add_edge(to, from, graph).first;
  boost::put(boost::edge_capacity, graph, forward, capacity);
  boost::put(boost::edge_capacity, graph, backward, int64_t{0});
  boost::put(boost::edge_reverse, graph, forward, backward);
  boost::put(boost::edge_reverse, graph, backward, forward);
}

}  // namespace

int64_t network_components(const Fabric& fabric) {
  const Undirected graph = network_graph(fabric);
  std::vector<int> component(boost::num_vertices(graph));
  const int all = boost::connected_components(graph, component.data());
  const auto switches =
      std::count_if(fabric.nodes().begin(), fabric.nodes().end(),
                    [](const Node& node) { return node.kind == NodeKind::kNvSwitch; });
  return all - switches;
}

Bandwidth max_flow_between(const Fabric& fabric, std::span<const GpuId> from,
                           std::span<const GpuId> to) {
  const size_t source = fabric.nodes().size(), sink = source + 1;
  FlowGraph graph(sink + 1);
  for (const Link& link : fabric.links()) {
    if (is_network(link)) {
      add_flow_edge(graph, link.from.index(), link.to.index(), link.capacity.bytes_per_second());
    }
  }
  const int64_t unlimited = Bandwidth::unlimited().bytes_per_second() >> 20;
  for (const GpuId gpu : from) add_flow_edge(graph, source, fabric.nic_of(gpu).index(), unlimited);
  for (const GpuId gpu : to) add_flow_edge(graph, fabric.nic_of(gpu).index(), sink, unlimited);
  return Bandwidth::from_bytes_per_second(boost::push_relabel_max_flow(graph, source, sink));
}

Bandwidth max_flow(size_t vertices, std::span<const FlowEdge> edges, size_t source, size_t sink) {
  FlowGraph graph(vertices);
  for (const FlowEdge& edge : edges) {
    add_flow_edge(graph, edge.from, edge.to, edge.capacity.bytes_per_second());
  }
  return Bandwidth::from_bytes_per_second(boost::push_relabel_max_flow(graph, source, sink));
}

int64_t network_diameter(const Fabric& fabric) {
  const Undirected graph = network_graph(fabric);
  int64_t farthest = 0;
  for (size_t gpu = 0; gpu < fabric.gpus(); ++gpu) {
    std::vector<int64_t> distance(boost::num_vertices(graph), 0);
    boost::breadth_first_search(graph, fabric.nic_of(GpuId(gpu)).index(),
                                boost::visitor(boost::make_bfs_visitor(boost::record_distances(
                                    distance.data(), boost::on_tree_edge()))));
    for (size_t other = 0; other < fabric.gpus(); ++other) {
      if (fabric.host_of(GpuId(gpu)) == fabric.host_of(GpuId(other))) continue;
      farthest = std::max(farthest, distance[fabric.nic_of(GpuId(other)).index()]);
    }
  }
  return farthest;
}

}  // namespace herdsim

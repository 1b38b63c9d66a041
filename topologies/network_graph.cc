#include "topologies/network_graph.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "sim/fabric/fabric_builder.h"
#include "sim/fabric/graph_algorithms.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

// A cable between two switches, by their indices.
struct Trunk {
  size_t a, b;
  Bandwidth lane;
  int64_t lanes;
};

// Names resolved: what each GPU's NIC is plugged into, and what joins the switches.
struct Cabling {
  std::vector<size_t> switch_of_gpu;
  std::vector<Bandwidth> lane_of_gpu;
  std::vector<int64_t> lanes_of_gpu;
  std::vector<Trunk> trunks;
};

Cabling cabling(const ClusterSpec& spec) {
  const NetworkGraph& graph = spec.network;
  std::unordered_map<std::string, size_t> switches;
  std::unordered_map<std::string, std::pair<int64_t, int64_t>> hosts;  // first, count
  for (size_t i = 0; i < graph.switches.size(); ++i) switches[graph.switches[i].name] = i;
  int64_t next = 0;
  for (const NetworkGraph::Hosts& group : graph.hosts) {
    hosts[group.name] = {next, group.count};
    next += group.count;
  }
  Cabling out;
  const auto gpus = static_cast<size_t>(spec.gpus);
  out.switch_of_gpu.resize(gpus);
  out.lane_of_gpu.resize(gpus);
  out.lanes_of_gpu.resize(gpus);
  for (const NetworkGraph::Link& link : graph.links) {
    const Bandwidth lane = link.lane == Bandwidth() ? spec.nic : link.lane;
    const auto from = switches.find(link.from), to = switches.find(link.to);
    if (from != switches.end() && to != switches.end()) {
      out.trunks.push_back({from->second, to->second, lane, link.lanes});
      continue;
    }
    const auto [first, count] = hosts.at(from == switches.end() ? link.from : link.to);
    const size_t at = from == switches.end() ? to->second : from->second;
    for (int64_t host = first; host < first + count; ++host) {
      const int64_t end = link.nic < 0 ? spec.gpus_per_host : link.nic + 1;
      for (int64_t nic = std::max<int64_t>(0, link.nic); nic < end; ++nic) {
        const auto gpu = static_cast<size_t>(host * spec.gpus_per_host + nic);
        out.switch_of_gpu[gpu] = at;
        out.lane_of_gpu[gpu] = lane;
        out.lanes_of_gpu[gpu] = link.lanes;
      }
    }
  }
  return out;
}

// Shortest paths over the switches. Distances are kept for all pairs; there are at most 4,096
// switches (append_graph_faults).
class ShortestPaths {
 public:
  struct Neighbour {
    size_t at;
    LinkId link;
  };

  explicit ShortestPaths(std::vector<std::vector<Neighbour>> neighbours)
      : neighbours_(std::move(neighbours)),
        distance_(neighbours_.size() * neighbours_.size(), kApart) {
    std::vector<size_t> queue;
    for (size_t from = 0; from < neighbours_.size(); ++from) {
      uint16_t* const row = &distance_[from * neighbours_.size()];
      queue.assign(1, from);
      row[from] = 0;
      for (size_t next = 0; next < queue.size(); ++next) {
        const size_t here = queue[next];
        for (const Neighbour& neighbour : neighbours_[here]) {
          if (row[neighbour.at] != kApart) continue;
          row[neighbour.at] = static_cast<uint16_t>(row[here] + 1);
          queue.push_back(neighbour.at);
        }
      }
    }
  }

  // Cables run both ways, so distances do.
  uint16_t distance(size_t a, size_t b) const { return distance_[a * neighbours_.size() + b]; }

  void append_path(size_t from, size_t to, size_t choice, std::vector<LinkId>& path) const {
    while (from != to) {
      const uint16_t left = distance(from, to);
      const auto leads = [&](const Neighbour& n) { return distance(n.at, to) + 1 == left; };
      const auto& around = neighbours_[from];
      const auto ways = static_cast<size_t>(std::count_if(around.begin(), around.end(), leads));
      size_t skip = choice % ways;
      const auto next = std::find_if(around.begin(), around.end(),
                                     [&](const Neighbour& n) { return leads(n) && skip-- == 0; });
      path.push_back(next->link);
      from = next->at;
    }
  }

 private:
  static constexpr uint16_t kApart = std::numeric_limits<uint16_t>::max();
  std::vector<std::vector<Neighbour>> neighbours_;
  std::vector<uint16_t> distance_;
};

class GraphRoutes : public MeshRoutes {
 public:
  GraphRoutes(ShortestPaths paths, NodeId first) : paths_(std::move(paths)), first_(first) {}

  void append_path(NodeId from, NodeId to, GpuId destination,
                   std::vector<LinkId>& path) const override {
    paths_.append_path(number(from), number(to), destination.index(), path);
  }
  // At most one switch between them: leaves of one spine.
  bool same_group(NodeId a, NodeId b) const override {
    return paths_.distance(number(a), number(b)) <= 2;
  }

 private:
  size_t number(NodeId at) const { return at.index() - first_.index(); }

  const ShortestPaths paths_;
  const NodeId first_;  // the switches follow one another
};

ShortestPaths paths_of(const NetworkGraph& graph, const Cabling& cables,
                       const std::vector<LinkId>& links) {
  std::vector<std::vector<ShortestPaths::Neighbour>> neighbours(graph.switches.size());
  for (size_t t = 0; t < cables.trunks.size(); ++t) {
    const Trunk& trunk = cables.trunks[t];
    neighbours[trunk.a].push_back({trunk.b, links[t]});
    neighbours[trunk.b].push_back({trunk.a, LinkId(links[t].index() + 1)});
  }
  return ShortestPaths(std::move(neighbours));
}

// Between the switches of GPUs [0, half) and of the others.
Bandwidth bisection(const ClusterSpec& spec, const Cabling& cables, int64_t half) {
  std::vector<FlowEdge> edges;
  const size_t switches = spec.network.switches.size();
  for (const Trunk& trunk : cables.trunks) {
    edges.push_back({trunk.a, trunk.b, trunk.lane * trunk.lanes});
    edges.push_back({trunk.b, trunk.a, trunk.lane * trunk.lanes});
  }
  // All NICs of one side at a switch together.
  std::vector<Bandwidth> supply(switches), demand(switches);
  for (size_t gpu = 0; gpu < cables.switch_of_gpu.size(); ++gpu) {
    auto& side = static_cast<int64_t>(gpu) < half ? supply : demand;
    Bandwidth& at = side[cables.switch_of_gpu[gpu]];
    at = at + cables.lane_of_gpu[gpu] * cables.lanes_of_gpu[gpu];
  }
  for (size_t s = 0; s < switches; ++s) {
    if (supply[s] > Bandwidth()) edges.push_back({switches, s, supply[s]});
    if (demand[s] > Bandwidth()) edges.push_back({s, switches + 1, demand[s]});
  }
  return max_flow(switches + 2, edges, switches, switches + 1);
}

}  // namespace

Fabric build_graph(const ClusterSpec& spec) {
  const NetworkGraph& graph = spec.network;
  const Cabling cables = cabling(spec);
  const auto gpus = static_cast<size_t>(spec.gpus);
  FabricBuilder builder({.gpus = gpus,
                         .gpus_per_host = static_cast<size_t>(spec.gpus_per_host),
                         .nvlink = spec.nvlink});
  builder.reserve(gpus + graph.switches.size());
  std::vector<NodeId> nics, switches;
  for (size_t gpu = 0; gpu < gpus; ++gpu) {
    nics.push_back(builder.add(NodeKind::kNic));
    builder.connect(NodeId(gpu), nics.back(), spec.pcie);
  }
  for (const NetworkGraph::Switch& entry : graph.switches) {
    switches.push_back(builder.add(NodeKind::kTor, static_cast<size_t>(entry.count)));
  }
  for (size_t gpu = 0; gpu < gpus; ++gpu) {
    builder.connect(nics[gpu], switches[cables.switch_of_gpu[gpu]], cables.lane_of_gpu[gpu],
                    static_cast<size_t>(cables.lanes_of_gpu[gpu]));
  }
  std::vector<LinkId> links;
  for (const Trunk& trunk : cables.trunks) {
    links.push_back(builder.join(switches[trunk.a], switches[trunk.b], LinkKind::kSwitchToSwitch,
                                 trunk.lane, static_cast<size_t>(trunk.lanes)));
  }
  builder.set_mesh(std::make_shared<GraphRoutes>(paths_of(graph, cables, links), switches.front()));
  return std::move(builder).build();
}

TopologyFacts graph_facts(const ClusterSpec& spec) {
  const NetworkGraph& graph = spec.network;
  const Cabling cables = cabling(spec);
  TopologyFacts facts;
  facts.gpus = spec.gpus;
  facts.hosts = spec.gpus / spec.gpus_per_host;
  facts.pods = 1;
  facts.gpus_per_pod = spec.gpus;
  std::vector<int64_t> ports(graph.switches.size());
  std::vector<bool> has_gpus(graph.switches.size());
  for (size_t gpu = 0; gpu < cables.switch_of_gpu.size(); ++gpu) {
    facts.nic_links += cables.lanes_of_gpu[gpu];
    ports[cables.switch_of_gpu[gpu]] += cables.lanes_of_gpu[gpu];
    has_gpus[cables.switch_of_gpu[gpu]] = true;
  }
  for (const Trunk& trunk : cables.trunks) {
    facts.switch_links += trunk.lanes;
    ports[trunk.a] += trunk.lanes;
    ports[trunk.b] += trunk.lanes;
  }
  for (size_t s = 0; s < graph.switches.size(); ++s) {
    const int64_t count = graph.switches[s].count;
    facts.tors += count;
    facts.degree = std::max(facts.degree, (ports[s] + count - 1) / count);
  }
  const ShortestPaths paths =
      paths_of(graph, cables, std::vector<LinkId>(cables.trunks.size(), LinkId(0)));
  int64_t farthest = 0;
  for (size_t a = 0; a < has_gpus.size(); ++a) {
    for (size_t b = 0; b < a && has_gpus[a]; ++b) {
      if (has_gpus[b]) farthest = std::max<int64_t>(farthest, paths.distance(a, b));
    }
  }
  facts.diameter = facts.hosts == 1 ? 0 : 2 + farthest;
  const int64_t half = facts.hosts / 2 * spec.gpus_per_host;
  facts.cluster_bisection = half == 0 ? Bandwidth() : bisection(spec, cables, half);
  facts.pod_bisection = facts.cluster_bisection;
  if (half > 0) {
    Bandwidth sent;
    for (size_t gpu = 0; gpu < static_cast<size_t>(half); ++gpu) {
      sent = sent + cables.lane_of_gpu[gpu] * cables.lanes_of_gpu[gpu];
    }
    facts.oversubscription =
        std::max(1.0, static_cast<double>(sent.bytes_per_second()) /
                          static_cast<double>(facts.cluster_bisection.bytes_per_second()));
  }
  return facts;
}

}  // namespace herdsim

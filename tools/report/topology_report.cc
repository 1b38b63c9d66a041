#include "tools/report/topology_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/table.h"
#include "sim/base/text.h"

namespace herdsim {
namespace {

using Json = nlohmann::ordered_json;

struct Built {
  const Topology& row;
  Fabric fabric;
  TopologyFacts facts;
};

Built built(const ClusterSpec& spec) {
  const Topology* row = find_topology(spec.topology);
  HERDSIM_CHECK(row != nullptr) << spec.topology;
  return {.row = *row, .fabric = row->build(spec), .facts = row->facts(spec)};
}

// GPUs below every node of the network tree.
std::vector<int64_t> gpus_below(const Fabric& fabric) {
  std::vector<int64_t> below(fabric.nodes().size());
  for (size_t i = 0; i < below.size(); ++i) {
    const Node& node = fabric.nodes()[NodeId(i)];
    if (node.kind == NodeKind::kGpu) below[i] = 1;
    // Parents have higher ids than their children.
    if (node.parent != NodeId(i)) below[node.parent.index()] += below[i];
  }
  return below;
}

// One layer of links, lanes of one direction together.
struct Layer {
  LinkKind kind;
  int64_t bundles = 0, lanes = 0;
  Bandwidth lane, all;
};

std::vector<Layer> layers(const Fabric& fabric) {
  std::vector<Layer> all;
  for (size_t k = 0; k < kLinkKinds; ++k) {
    const auto kind = static_cast<LinkKind>(k);
    if (kind == LinkKind::kPcie && fabric.torus()) continue;  // inside the chip
    if (kind == LinkKind::kDisks) continue;                   // inside the servers
    Layer layer{.kind = kind};
    int64_t capacity = 0;
    for (const Link& link : fabric.links()) {
      if (link.kind != kind) continue;
      ++layer.bundles;
      layer.lanes += link.width;
      layer.lane = link.capacity / link.width;
      capacity += link.capacity.bytes_per_second() / 2;
    }
    layer.bundles /= 2;
    layer.lanes /= 2;
    layer.all = Bandwidth::from_bytes_per_second(capacity);
    if (layer.bundles > 0) all.push_back(layer);
  }
  return all;
}

std::string domain_effect(const FailureDomain& domain) {
  if (domain.gpus_slowed == 0) {
    return fmt::format("cuts off {} GPU{}", count_text(domain.gpus_cut_off),
                       domain.gpus_cut_off == 1 ? "" : "s");
  }
  return fmt::format("leaves {} GPUs {} of their bandwidth across it",
                     count_text(domain.gpus_slowed), to_text(Ratio(domain.bandwidth_left)));
}

std::string domain_name(NodeKind kind) {
  return kind == NodeKind::kNvSwitch ? "host" : std::string(node_kind_name(kind));
}

std::string facts_table(const Built& b) {
  const TopologyFacts& f = b.facts;
  TextTable table({{"figure"}, {"value", Align::kRight}, {"meaning", Align::kWrap}});
  table.add_row({"GPUs", count_text(f.gpus), ""});
  const bool is_torus = b.fabric.torus().has_value();
  table.add_row({"hosts", count_text(f.hosts), is_torus ? "" : "one NVLink domain each"});
  if (f.tors > 0) {
    table.add_row({b.row.is_mesh ? "switches" : "ToRs", count_text(f.tors),
                   b.row.is_mesh ? "joined sideways, none above all others"
                                 : "first switch of a NIC; a leaf of one rail where there are rails"});
  }
  if (!b.row.is_mesh) {
    table.add_row({"pods", count_text(f.pods), "ToRs joined by one layer of switches"});
  } else if (f.pods > 1) {
    table.add_row({"groups", count_text(f.pods), "of switches that are all joined"});
  }
  if (f.pod_switches > 0)
    table.add_row({"pod switches", count_text(f.pod_switches), "of all pods"});
  if (f.core_switches > 0) table.add_row({"core switches", count_text(f.core_switches), ""});
  table.add_row({"degree", count_text(f.degree),
                 is_torus ? "cables of a chip" : "cables of the switch next to a NIC with the most"});
  if (f.pods > 1 || !b.row.is_mesh) {
    table.add_row({b.row.is_mesh ? "group bisection" : "pod bisection", to_text(f.pod_bisection),
                   fmt::format("between halves of one {}, one direction",
                               b.row.is_mesh ? "group" : "pod")});
  }
  table.add_row({"cluster bisection", to_text(f.cluster_bisection),
                 !b.row.is_mesh ? "between halves of the pods, one direction"
                 : f.pods > 1   ? "between halves of the groups, one direction"
                                : "between halves of the GPUs, one direction"});
  table.add_row({"bisection a GPU", to_text(f.cluster_bisection / std::max<int64_t>(1, f.gpus / 2)),
                 "of the cluster, over the GPUs of a half"});
  table.add_row({"oversubscription", fmt::format("{:.3g}", f.oversubscription),
                 !b.row.is_mesh ? "the worst switch: NICs below over its uplinks"
                 : f.pods > 1   ? "a group: its NICs over its cables to others"
                                : "what half of the GPUs can send over the bisection"});
  table.add_row({"diameter", fmt::format("{}", f.diameter),
                 is_torus ? "links between the chips farthest apart"
                          : "links between the NICs farthest apart"});
  if (f.storage_servers > 0) {
    table.add_row({"storage servers", count_text(f.storage_servers),
                   f.frontend_switches > 0 ? "over a frontend network of the hosts' own" : "on the topmost switches"});
    if (f.frontend_switches > 0) {
      table.add_row({"frontend switches", count_text(f.frontend_switches), "first switch of a host's frontend port"});
    }
    table.add_row({"to storage", to_text(f.storage_bandwidth), "from all hosts, without what disks sustain"});
    table.add_row({"to storage a host", to_text(f.storage_bandwidth / std::max<int64_t>(1, f.hosts)), ""});
  }
  return table.text();
}

std::string layers_table(const Fabric& fabric) {
  TextTable table({{"links"},
                   {"bundles", Align::kRight},
                   {"lanes", Align::kRight},
                   {"a lane", Align::kRight},
                   {"all lanes", Align::kRight}});
  for (const Layer& layer : layers(fabric)) {
    table.add_row({std::string(link_kind_name(layer.kind)), count_text(layer.bundles),
                   count_text(layer.lanes), to_text(layer.lane), to_text(layer.all)});
  }
  return table.text();
}

std::string domains_table(const Built& b) {
  TextTable table({{"one failing"}, {"of", Align::kRight}, {"effect", Align::kWrap}});
  for (const FailureDomain& domain : failure_domains(b.fabric, b.facts)) {
    table.add_row({domain_name(domain.kind), count_text(domain.count), domain_effect(domain)});
  }
  return table.text();
}

}  // namespace

std::vector<FailureDomain> failure_domains(const Fabric& fabric, const TopologyFacts& facts) {
  const std::vector<int64_t> below = gpus_below(fabric);
  const auto most_below = [&](NodeKind kind) {
    int64_t most = 0;
    for (size_t i = 0; i < below.size(); ++i) {
      if (fabric.nodes()[NodeId(i)].kind == kind) most = std::max(most, below[i]);
    }
    return most;
  };
  const auto fewest_devices = [&](NodeKind kind) {
    int64_t fewest = 0;
    for (const Node& node : fabric.nodes()) {
      if (node.kind != kind) continue;
      fewest = fewest == 0 ? node.count : std::min<int64_t>(fewest, node.count);
    }
    return fewest;
  };
  std::vector<FailureDomain> domains = {
      {.kind = NodeKind::kNic, .count = facts.gpus, .gpus_cut_off = most_below(NodeKind::kNic)},
      {.kind = NodeKind::kNvSwitch,
       .count = facts.hosts,
       .gpus_cut_off = facts.gpus / facts.hosts}};
  // A layer of single switches cuts off what is below; side by side, the others carry on.
  const auto add_layer = [&](NodeKind kind, int64_t switches) {
    if (switches == 0) return;
    const int64_t side_by_side = fewest_devices(kind);
    if (side_by_side == 1) {
      domains.push_back({.kind = kind, .count = switches, .gpus_cut_off = most_below(kind)});
    } else {
      domains.push_back({.kind = kind,
                         .count = switches,
                         .gpus_slowed = most_below(kind),
                         .bandwidth_left = 1 - 1.0 / static_cast<double>(side_by_side)});
    }
  };
  add_layer(NodeKind::kTor, facts.tors);
  add_layer(NodeKind::kPod, facts.pod_switches);
  add_layer(NodeKind::kCore, facts.core_switches);
  return domains;
}

std::string topology_table(const ClusterSpec& spec) {
  const Built b = built(spec);
  return fmt::format("{}: {}\n\n{}\n{}\n{}", spec.name.empty() ? spec.topology : spec.name,
                     b.row.name, facts_table(b), layers_table(b.fabric), domains_table(b));
}

std::string topology_json(const ClusterSpec& spec) {
  const Built b = built(spec);
  const TopologyFacts& f = b.facts;
  Json links = Json::array();
  for (const Layer& layer : layers(b.fabric)) {
    links.push_back({{"kind", link_kind_name(layer.kind)},
                     {"bundles", layer.bundles},
                     {"lanes", layer.lanes},
                     {"lane_bytes_per_second", layer.lane.bytes_per_second()},
                     {"bytes_per_second", layer.all.bytes_per_second()}});
  }
  Json domains = Json::array();
  for (const FailureDomain& domain : failure_domains(b.fabric, b.facts)) {
    domains.push_back({{"kind", domain_name(domain.kind)},
                       {"count", domain.count},
                       {"gpus_cut_off", domain.gpus_cut_off},
                       {"gpus_slowed", domain.gpus_slowed},
                       {"bandwidth_left", domain.bandwidth_left}});
  }
  const Json json = {{"name", spec.name},
                     {"topology", spec.topology},
                     {"gpus", f.gpus},
                     {"hosts", f.hosts},
                     {"tors", f.tors},
                     {"pods", f.pods},
                     {"degree", f.degree},
                     {"pod_switches", f.pod_switches > 0 ? Json(f.pod_switches) : Json()},
                     {"core_switches", f.core_switches > 0 ? Json(f.core_switches) : Json()},
                     {"pod_bisection_bytes_per_second", f.pod_bisection.bytes_per_second()},
                     {"cluster_bisection_bytes_per_second", f.cluster_bisection.bytes_per_second()},
                     {"oversubscription", f.oversubscription},
                     {"diameter_links", f.diameter},
                     {"frontend_ports", f.frontend_ports},
                     {"frontend_switches", f.frontend_switches},
                     {"storage_servers", f.storage_servers},
                     {"storage_bytes_per_second", f.storage_bandwidth.bytes_per_second()},
                     {"links", links},
                     {"failure_domains", domains}};
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

namespace {

// Of a vertex in a drawing: the name it was given where there is one.
std::string label_of(const Built& b, const ClusterSpec& spec, NodeId id) {
  const NodeKind kind = b.fabric.nodes()[id].kind;
  const size_t end = b.fabric.storage() ? b.fabric.storage()->first_node.index() : b.fabric.nodes().size();
  const size_t first = end - spec.network.switches.size();
  if (id.index() < first || id.index() >= end) return std::string(node_kind_name(kind));
  std::string label;
  for (const char c : spec.network.switches[id.index() - first].name) {
    if (c == '"' || c == '\\') label += '\\';
    label += c;
  }
  return label;
}

}  // namespace

std::string topology_graphviz(const ClusterSpec& spec) {
  HERDSIM_CHECK(spec.gpus <= kGraphvizGpus) << spec.gpus << " GPUs";
  const Built b = built(spec);
  const auto name = [&b](NodeId id) {
    return fmt::format("{}_{}", node_kind_name(b.fabric.nodes()[id].kind), id.index());
  };
  std::string out = "graph topology {\n  rankdir=BT;\n  node [shape=box, fontname=Helvetica];\n";
  for (size_t i = 0; i < b.fabric.nodes().size(); ++i) {
    const Node& node = b.fabric.nodes()[NodeId(i)];
    const std::string devices = node.count > 1 ? fmt::format(" x {}", node.count) : "";
    out += fmt::format("  {} [label=\"{}{}\"];\n", name(NodeId(i)), label_of(b, spec, NodeId(i)),
                       devices);
  }
  for (const Link& link : b.fabric.links()) {
    // NVLink runs from the GPU up to a switch of higher id too.
    if (link.to < link.from) continue;
    const std::string lanes = link.width > 1 ? fmt::format("{} x ", link.width) : "";
    out += fmt::format("  {} -- {} [label=\"{}{}\"];\n", name(link.from), name(link.to), lanes,
                       to_text(link.capacity / link.width));
  }
  // A host's frontend ports are on its board, as its GPUs are.
  if (b.fabric.storage() && !b.fabric.storage()->over_training) {
    for (size_t gpu = 0; gpu < b.fabric.gpus(); gpu += b.fabric.storage()->gpus_per_port) {
      out += fmt::format("  {} -- {} [style=dashed];\n", name(b.fabric.node_of(GpuId(gpu))),
                         name(b.fabric.storage()->port_of(GpuId(gpu))));
    }
  }
  return out + "}\n";
}

}  // namespace herdsim

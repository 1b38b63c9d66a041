#include <algorithm>

#include "topologies/clos.h"
#include "topologies/cluster_check.h"
#include "topologies/dragonfly.h"
#include "topologies/storage_network.h"
#include "topologies/torus.h"

namespace herdsim {
namespace {

int64_t given_or(int64_t given, int64_t otherwise) { return given > 0 ? given : otherwise; }

ClosShape clos3_shape(const ClusterSpec& spec) {
  return {.gpus = spec.gpus,
          .gpus_per_host = spec.gpus_per_host,
          .rails = 1,
          .planes = given_or(spec.planes, 1),
          .gpus_per_group = spec.gpus_per_tor,
          .gpus_per_pod = spec.gpus_per_pod,
          .tor_uplinks = spec.tor_uplinks,
          .pod_oversubscription = spec.pod_oversubscription,
          .nvlink = spec.nvlink,
          .pcie = spec.pcie,
          .nic = spec.nic,
          .switch_ports = spec.switch_ports};
}

// Ports of an NDR switch (Quantum-2 QM9700: 64 x 400 Gb/s), which the published switch counts
// follow.
constexpr int64_t kNdrSwitchPorts = 64;

ClosShape rails_shape(const ClusterSpec& spec) {
  ClosShape shape = clos3_shape(spec);
  shape.rails = rails_of(spec);
  shape.gpus_per_group = spec.gpus_per_tor * shape.rails;
  return shape;
}

ClosShape rail_optimized_shape(const ClusterSpec& spec) {
  ClosShape shape = rails_shape(spec);
  shape.switch_ports = given_or(spec.switch_ports, kNdrSwitchPorts);
  return shape;
}

// Planes of Alibaba's HPN 7.0: a NIC has two ports of half its rate, on two ToRs that share no
// switch.
constexpr int64_t kDualPlanes = 2;

ClosShape dual_plane_shape(const ClusterSpec& spec) {
  ClosShape shape = rails_shape(spec);
  shape.planes = given_or(spec.planes, kDualPlanes);
  return shape;
}

// Switches of R ports, half of them down and half up, R / 2 ToRs in a pod: R^3 / 4 GPUs in three
// layers. Oversubscription takes uplinks away.
ClosShape fat_tree_shape(const ClusterSpec& spec) {
  ClosShape shape = clos3_shape(spec);
  const int64_t half = std::max<int64_t>(1, given_or(spec.switch_ports, kNdrSwitchPorts) / 2);
  shape.switch_ports = 2 * half;
  shape.gpus_per_group = half;
  shape.tor_uplinks = half;
  shape.gpus_per_pod = half * half;
  return shape;
}

// A plane each for every port of a NIC, none of which meet above the ToRs; two layers of switches.
constexpr int64_t kManyPlanes = 8;

ClosShape multi_plane_shape(const ClusterSpec& spec) {
  ClosShape shape = clos3_shape(spec);
  shape.planes = given_or(spec.planes, kManyPlanes);
  shape.gpus_per_pod = (spec.gpus + spec.gpus_per_tor - 1) / spec.gpus_per_tor * spec.gpus_per_tor;
  return shape;
}

// Of the network of the GPUs, with storage beside it.
template <Fabric (*kBuild)(const ClusterSpec&)>
Fabric whole(const ClusterSpec& spec) {
  return with_storage_network(kBuild(spec), spec);
}
template <TopologyFacts (*kFacts)(const ClusterSpec&)>
TopologyFacts whole_facts(const ClusterSpec& spec) {
  TopologyFacts facts = kFacts(spec);
  add_storage_facts(spec, facts);
  return facts;
}

template <ClosShape (*kShape)(const ClusterSpec&)>
Fabric clos_network(const ClusterSpec& spec) {
  return build_clos(kShape(spec));
}
template <ClosShape (*kShape)(const ClusterSpec&)>
TopologyFacts clos_network_facts(const ClusterSpec& spec) {
  return clos_facts(kShape(spec));
}
template <ClosShape (*kShape)(const ClusterSpec&)>
constexpr auto build = &whole<&clos_network<kShape>>;
template <ClosShape (*kShape)(const ClusterSpec&)>
constexpr auto facts = &whole_facts<&clos_network_facts<kShape>>;

void append_rack_faults(const ClusterSpec& spec, ClusterCheck& check) {
  check.multiple("gpus_per_tor", spec.gpus_per_tor, "gpus_per_host", spec.gpus_per_host);
  check.multiple("gpus_per_pod", spec.gpus_per_pod, "gpus_per_tor", spec.gpus_per_tor);
}

void append_rail_faults(const ClusterSpec& spec, ClusterCheck& check) {
  check.multiple("gpus_per_host", spec.gpus_per_host, "rails", rails_of(spec));
  check.multiple("gpus_per_tor", spec.gpus_per_tor, "GPUs of a rail in a host",
                 spec.gpus_per_host / std::max<int64_t>(1, rails_of(spec)));
  check.multiple("gpus_per_pod", spec.gpus_per_pod, "gpus_per_tor * rails",
                 spec.gpus_per_tor * rails_of(spec));
}

void append_radix_faults(const ClusterSpec& spec, ClusterCheck& check) {
  check.multiple("switch_ports", spec.switch_ports, "2 * gpus_per_host", 2 * spec.gpus_per_host);
}

}  // namespace

int64_t rails_of(const ClusterSpec& spec) { return given_or(spec.rails, spec.gpus_per_host); }

const std::vector<Topology>& topologies() {
  static const std::vector<Topology> rows = {
      {.name = "clos3",
       .help = "Three-layer Clos: all GPUs of a rack under one ToR, racks joined in a pod, pods "
               "oversubscribed at the aggregation layer. The defaults are Meta's 24K RoCE cluster: "
               "racks of 16 GPUs, 192 racks a pod, 8 pods, 1:7.",
       .has_rails = false,
       .append_faults = &append_rack_faults,
       .build = build<&clos3_shape>,
       .facts = facts<&clos3_shape>},
      {.name = "rail-optimized",
       .help = "GPU i of every host of a scalable unit under leaf i; leaves of a pod meet in its "
               "spine, pods in the core. DGX SuperPOD NDR: units of 32 hosts (gpus_per_tor = 32, "
               "tor_uplinks = 32), non-blocking (pod_oversubscription = 1).",
       .has_rails = true,
       .append_faults = &append_rail_faults,
       .build = build<&rail_optimized_shape>,
       .facts = facts<&rail_optimized_shape>},
      {.name = "dual-plane",
       .help = "Rails whose NICs have a port on each of two ToRs: one ToR failing halves bandwidth "
               "and cuts nobody off. Alibaba HPN 7.0: segments of 128 hosts (gpus_per_tor = 128, "
               "tor_uplinks = 120), pods of 15,360 GPUs, 15:1 above.",
       .has_rails = true,
       .append_faults = &append_rail_faults,
       .build = build<&dual_plane_shape>,
       .facts = facts<&dual_plane_shape>},
      {.name = "fat-tree",
       .help = "Folded Clos of equal switches of switch_ports ports, half down and half up: "
               "switch_ports / 2 GPUs a ToR, their square a pod, three layers of R^3 / 4 GPUs; "
               "pod_oversubscription takes core uplinks away. gpus_per_tor, gpus_per_pod and "
               "tor_uplinks follow from the ports. Al-Fares et al., SIGCOMM 2008.",
       .has_rails = false,
       .append_faults = &append_radix_faults,
       .build = build<&fat_tree_shape>,
       .facts = facts<&fat_tree_shape>},
      {.name = "multi-plane",
       .help = "Two layers in several planes that never meet: a NIC has a port on a ToR of each, "
               "at its part of the rate. DeepSeek-V3's network has eight planes; gpus_per_pod "
               "changes nothing.",
       .has_rails = false,
       .append_faults = &append_rack_faults,
       .build = build<&multi_plane_shape>,
       .facts = facts<&multi_plane_shape>},
      {.name = "torus",
       .help = "Chips that are their own routers in a grid of one to three dimensions (torus: [16, "
               "16, 16]), ends joined unless torus_wraps is false; `nic` is what a chip sends over "
               "all its cables together. Collectives are rings along the dimensions both ways, not "
               "NCCL. TPU v4 and v5p: Jouppi et al., ISCA 2023.",
       .is_mesh = true,
       .append_faults = &append_torus_faults,
       .build = &whole<&build_torus>,
       .facts = &whole_facts<&torus_facts>},
      {.name = "dragonfly",
       .help = "Groups of gpus_per_pod GPUs on routers of gpus_per_tor that are all joined to each "
               "other (local_lanes), every two groups joined by global_lanes cables; minimal "
               "routes, or detours by a third group (routing valiant, ugal). Kim et al., ISCA "
               "2008; HPE Slingshot.",
       .is_mesh = true,
       .append_faults = &append_dragonfly_faults,
       .build = &whole<&build_dragonfly>,
       .facts = &whole_facts<&dragonfly_facts>},
      {.name = "graph",
       .help = "Hosts, switches and cables as `network` lists them, one by one; shortest paths, "
               "chosen by destination where there are several.",
       .is_mesh = true,
       .append_faults = &append_graph_faults,
       .build = &whole<&build_graph>,
       .facts = &whole_facts<&graph_facts>},
  };
  return rows;
}

const Topology* find_topology(std::string_view name) {
  for (const Topology& row : topologies()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace herdsim

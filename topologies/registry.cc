#include "topologies/clos.h"

namespace herdsim {
namespace {

ClosShape shape_of(const ClusterSpec& spec) {
  return {.gpus = spec.gpus,
          .gpus_per_host = spec.gpus_per_host,
          .rails = 1,
          .gpus_per_group = spec.gpus_per_tor,
          .gpus_per_pod = spec.gpus_per_pod,
          .tor_uplinks = spec.tor_uplinks,
          .pod_oversubscription = spec.pod_oversubscription,
          .nvlink = spec.nvlink,
          .pcie = spec.pcie,
          .nic = spec.nic};
}

// Ports of an NDR switch (Quantum-2 QM9700: 64 x 400 Gb/s), which the published switch counts
// follow.
constexpr int64_t kNdrSwitchPorts = 64;

ClosShape rail_optimized_shape(const ClusterSpec& spec) {
  ClosShape shape = shape_of(spec);
  shape.rails = spec.gpus_per_host;
  shape.gpus_per_group = spec.gpus_per_tor * shape.rails;
  shape.switch_ports = kNdrSwitchPorts;
  return shape;
}

Fabric build_clos3(const ClusterSpec& spec) { return build_clos(shape_of(spec)); }
TopologyFacts clos3_facts(const ClusterSpec& spec) { return clos_facts(shape_of(spec)); }

Fabric build_rail_optimized(const ClusterSpec& spec) {
  return build_clos(rail_optimized_shape(spec));
}
TopologyFacts rail_optimized_facts(const ClusterSpec& spec) {
  return clos_facts(rail_optimized_shape(spec));
}

}  // namespace

const std::vector<Topology>& topologies() {
  static const std::vector<Topology> rows = {
      {.name = "clos3",
       .help = "Three-layer Clos: all GPUs of a rack under one ToR, racks at full bisection in a "
               "pod, pods "
               "oversubscribed at the aggregation layer. Meta's 24K RoCE cluster is the default: "
               "racks of 16 GPUs, "
               "192 racks a pod, 8 pods, 1:7.",
       .build = &build_clos3,
       .facts = &clos3_facts},
      {.name = "rail-optimized",
       .help = "GPU i of every host of a scalable unit under leaf i; leaves of a pod meet in its "
               "spine, pods in the "
               "core. DGX SuperPOD NDR: units of 32 hosts (gpus_per_tor = 32, tor_uplinks = 32), "
               "non-blocking "
               "(pod_oversubscription = 1).",
       .build = &build_rail_optimized,
       .facts = &rail_optimized_facts},
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

#include "topologies/clos.h"

namespace herdsim {
namespace {

ClosShape clos3_shape(const ClusterSpec& spec) {
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
  ClosShape shape = clos3_shape(spec);
  shape.rails = spec.gpus_per_host;
  shape.gpus_per_group = spec.gpus_per_tor * shape.rails;
  shape.switch_ports = kNdrSwitchPorts;
  return shape;
}

// Planes of Alibaba's HPN 7.0: a NIC has two ports of half its rate, on two ToRs that share no
// switch.
constexpr int64_t kDualPlanes = 2;

ClosShape dual_plane_shape(const ClusterSpec& spec) {
  ClosShape shape = clos3_shape(spec);
  shape.rails = spec.gpus_per_host;
  shape.gpus_per_group = spec.gpus_per_tor * shape.rails;
  shape.planes = kDualPlanes;
  return shape;
}

template <ClosShape (*kShape)(const ClusterSpec&)>
Fabric build(const ClusterSpec& spec) {
  return build_clos(kShape(spec));
}
template <ClosShape (*kShape)(const ClusterSpec&)>
TopologyFacts facts(const ClusterSpec& spec) {
  return clos_facts(kShape(spec));
}

}  // namespace

const std::vector<Topology>& topologies() {
  static const std::vector<Topology> rows = {
      {.name = "clos3",
       .help = "Three-layer Clos: all GPUs of a rack under one ToR, racks joined in a pod, pods "
               "oversubscribed at the aggregation layer. The defaults are Meta's 24K RoCE cluster: "
               "racks of 16 GPUs, 192 racks a pod, 8 pods, 1:7.",
       .has_rails = false,
       .build = &build<&clos3_shape>,
       .facts = &facts<&clos3_shape>},
      {.name = "rail-optimized",
       .help = "GPU i of every host of a scalable unit under leaf i; leaves of a pod meet in its "
               "spine, pods in the core. DGX SuperPOD NDR: units of 32 hosts (gpus_per_tor = 32, "
               "tor_uplinks = 32), non-blocking (pod_oversubscription = 1).",
       .has_rails = true,
       .build = &build<&rail_optimized_shape>,
       .facts = &facts<&rail_optimized_shape>},
      {.name = "dual-plane",
       .help = "Rails whose NICs have a port on each of two ToRs: one ToR failing halves bandwidth "
               "and cuts nobody off. Alibaba HPN 7.0: segments of 128 hosts (gpus_per_tor = 128, "
               "tor_uplinks = 120), pods of 15,360 GPUs, 15:1 above.",
       .has_rails = true,
       .build = &build<&dual_plane_shape>,
       .facts = &facts<&dual_plane_shape>},
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

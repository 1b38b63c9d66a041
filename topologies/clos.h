// The folded Clos that every row of the registry is an instance of.
//
// GPUs come in host by host. Consecutive hosts form a ToR group. A group has one ToR for each rail:
// the NIC of local GPU i is cabled to the ToR of rail i mod rails. With one rail all GPUs of a rack
// share its ToR (clos3); with as many rails as GPUs a host, a GPU meets the GPUs of its own number
// under one ToR (rail-optimised). With several planes a ToR is as many switches side by side and a
// NIC has a port on each, at its part of the rate. Consecutive groups form a pod, pods meet in the
// core. The last group and pod may be partly filled: ToRs keep all their uplinks, a pod's are in
// proportion to its GPUs.
#pragma once

#include "topologies/cluster.h"

namespace herdsim {

struct ClosShape {
  int64_t gpus = 0;
  int64_t gpus_per_host = 8;
  int64_t rails = 1;   // of a group; divides gpus_per_host
  int64_t planes = 1;  // switches that share the NICs of a ToR
  int64_t gpus_per_group = 16;
  int64_t gpus_per_pod = 3072;
  int64_t tor_uplinks = 16;
  double pod_oversubscription = 1;
  Bandwidth nvlink, pcie, nic;
  // Switches of the pod layer and the core have this many ports of the NIC's speed; 0 if they are
  // not counted.
  int64_t switch_ports = 0;
};

Fabric build_clos(const ClosShape& shape);
TopologyFacts clos_facts(const ClosShape& shape);

}  // namespace herdsim

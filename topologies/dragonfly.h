// A dragonfly: groups of routers that are all joined to each other, and cables between every two
// groups (Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA
// 2008).
//
// The fields of a cluster: gpus_per_tor NICs a router (p), gpus_per_pod GPUs a group, hence
// a = gpus_per_pod / gpus_per_tor routers; local_lanes cables between any two routers of a group,
// global_lanes between any two groups. The global cables of a group are dealt to its routers in
// turn, in the order of the groups they lead to.
//
// Routes are minimal: to the router with a cable to the destination's group, across, and to the
// destination's router. Which of several cables is the destination's choice. Detours by a third
// group, which adaptive routing takes when cables are busy, are not modelled: adversarial traffic
// looks worse here than on such a machine.
#pragma once

#include "topologies/cluster.h"

namespace herdsim {

Fabric build_dragonfly(const ClusterSpec& spec);
TopologyFacts dragonfly_facts(const ClusterSpec& spec);
void append_dragonfly_faults(const ClusterSpec& spec, ClusterCheck& check);

}  // namespace herdsim

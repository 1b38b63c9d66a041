// A dragonfly: groups of routers that are all joined to each other, and cables between every two
// groups (Kim, Dally, Scott and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA
// 2008).
//
// The fields of a cluster: gpus_per_tor NICs a router (p), gpus_per_pod GPUs a group, hence
// a = gpus_per_pod / gpus_per_tor routers; local_lanes cables between any two routers of a group,
// global_lanes between any two groups. The global cables of a group are dealt to its routers in
// turn, in the order of the groups they lead to.
//
// Minimal routes go to the router with a cable to the destination's group, across, and to the
// destination's router; which of several cables is the destination's choice. With routing "valiant"
// all, with "ugal" a share of the destinations are reached by way of a third group, minimally to it
// and from it; destinations take the other groups in turn. The share is the scenario's: queues,
// which tell a switch when to detour, are not modelled.
//
// Of N GPUs a group, G groups and g cables between two of them, where each group sends to the next
// one, a GPU gets of its port's rate at most
//
//   minimal   g / N                 one bundle of cables carries a group's traffic
//   share s   g / (N max(1 - s, 2 s / (G - 2)))     a detour crosses two of the other bundles
//   valiant   g (G - 2) / (2 N)     half, where the cables of a group can carry its GPUs
#pragma once

#include "topologies/cluster.h"

namespace herdsim {

Fabric build_dragonfly(const ClusterSpec& spec);
TopologyFacts dragonfly_facts(const ClusterSpec& spec);
void append_dragonfly_faults(const ClusterSpec& spec, ClusterCheck& check);

}  // namespace herdsim

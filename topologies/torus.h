// A torus of up to three dimensions whose chips are their own routers (TPU v4 and v5p).
//
// The NIC of a GPU stands for the router of a chip: it has a cable to the next chip each way along
// every dimension, each at an equal part of `nic`, which is what a chip can send in all. Routes go
// dimension by dimension, the shorter way around (dimension-order routing, Dally and Towles,
// "Principles and Practices of Interconnection Networks", chapter 8). Chips share no NVLink: a host
// is only what fails together.
#pragma once

#include "topologies/cluster.h"

namespace herdsim {

TorusShape torus_shape(const ClusterSpec& spec);
// One cable, one direction.
Bandwidth torus_link(const ClusterSpec& spec);

Fabric build_torus(const ClusterSpec& spec);
TopologyFacts torus_facts(const ClusterSpec& spec);
void append_torus_faults(const ClusterSpec& spec, ClusterCheck& check);

}  // namespace herdsim

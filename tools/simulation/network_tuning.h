// NCCL's constants for the machine and run of a scenario.
//
// The tables are of hosts with 8 H100, NVSwitch and 400 Gb/s a GPU (sim/collectives/nccl_tuning.h).
// Other links scale what they bound: rings inside a host follow NVLink, rings across hosts the NIC.
//
// A run that measured its own collectives on the whole job, at 1 GiB, moves them further. On one
// host the ratio of measured to predicted bus bandwidth scales the rings or the all-reduce there.
// Across hosts an all-gather or reduce-scatter spends what it takes beyond its bytes on the wire in
// the hops of its ring's R - 1 steps (ring_step() in nccl_tuning.h): about 45 us a hop on one cloud's
// fabric, 150 to 320 us on a bad one. One bandwidth tells those two apart and no more, so a job takes
// its own hop only where it is twice that of a healthy cloud. There a NIC carries 34 GB/s, and an
// all-reduce of some KiB over two or four whole hosts takes milliseconds. A large all-reduce, which is
// a tree there, scales the rate of trees.
#pragma once

#include "sim/collectives/nccl_tuning.h"
#include "sim/fabric/fabric.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// Requires: a validated scenario; the fabric and placement of its cluster.
NcclTuning network_tuning(const Scenario& scenario, const Fabric& fabric,
                          const TypedVector<RankId, GpuId>& placement);

}  // namespace herdsim

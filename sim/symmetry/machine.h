// The machine as a job sees it: the fabric, where its ranks are, and what is slow, degraded or
// hashed.
#pragma once

#include <cstdint>
#include <span>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/fabric/capacity_change.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/lane_spread.h"

namespace herdsim {

struct NcclTuning;  // sim/collectives/nccl_tuning.h

struct Machine {
  const Fabric& fabric;
  const TypedVector<RankId, GpuId>& placement;
  const TypedVector<LinkId, Bandwidth>& capacity;     // usable, degraded parts included
  const TypedVector<RankId, double>& compute_factor;  // 1: nominal; 0.9: a GPU at 90 % of its speed
  const NcclTuning& tuning;
  // How transfers spread over the lanes of a bundle; hashes are drawn by the seed.
  LaneSpread spread = {};
  uint64_t seed = 0;
  // Of their line rates that network links carry when nothing is wrong: what is missing of it is
  // lanes.
  double line_share = 1;
  std::span<const CapacityChange> changes = {};  // inside the step, by time
  bool is_shared = false;     // other jobs use the fabric; hosts are each job's own
  bool shares_hosts = false;  // so do flows of this job that are not in its graph, its hosts' links too
};

}  // namespace herdsim

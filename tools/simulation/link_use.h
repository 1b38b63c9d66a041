// Which links a step used, for what, and when.
//
// Nothing here is measured by the network: a transfer that ran n times carried n times its volume
// over each crossing of its path, so use is a sum over the few classes of transfers, the same
// folded and unfolded. Links that carry the same are one row.
#pragma once

#include <vector>

#include "sim/collectives/nccl_tuning.h"
#include "sim/executor/step_executor.h"
#include "sim/fabric/fabric.h"
#include "sim/metrics/step_result.h"
#include "sim/observe/span.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

// A step that has been run. All must outlive this object.
struct RunStep {
  const OpGraph& graph;
  const FoldedJob& job;
  const Fabric& fabric;
  const TypedVector<RankId, GpuId>& placement;
  const TypedVector<LinkId, Bandwidth>& capacity;
  const NcclTuning& tuning;
  const StepOutcome& outcome;
};

// Fills result.links and result.tiers. Requires: result.step_time is set.
void fill_link_use(const RunStep& step, StepResult& result);

// Fills result.collisions: lanes that a routing slows down.
void fill_collisions(const RunStep& step, StepResult& result);

// The load of the most used link of every network tier over time, GB/s, as counters of the cluster
// for a trace: "tor-pod: ToR 12 up". A transfer counts at its mean rate from its start to its end.
// Requires: the outcome has moves, that is, a rank was traced.
std::vector<Counter> link_counters(const RunStep& step);

}  // namespace herdsim

// Which links a step used, for what, and when.
//
// A transfer that ran n times carried n times its volume over each crossing of its path, so use is
// a sum over the few classes of transfers, the same folded and unfolded. Flows to and from the
// store count with what they had moved when the step ended. What other jobs put on a link of this
// one is the rest of what the network counted. Links that carry the same are one row.
//
// The disks of the store are shown in bytes of a read: a byte written is as many as it is
// amplified.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/collectives/nccl_tuning.h"
#include "sim/executor/step_executor.h"
#include "sim/fabric/fabric.h"
#include "sim/metrics/step_result.h"
#include "sim/observe/span.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

// A flow beside the step, of its own job. All must outlive this object.
struct BesideFlow {
  std::string_view label;  // "save", "read"
  const BackgroundFlow& flow;
  const BackgroundOutcome& outcome;
};

// A step that has been run. All must outlive this object.
struct RunStep {
  const OpGraph& graph;
  const FoldedJob& job;
  const Fabric& fabric;
  const TypedVector<RankId, GpuId>& placement;
  const TypedVector<LinkId, Bandwidth>& capacity;
  const NcclTuning& tuning;
  const StepOutcome& outcome;
  std::span<const BesideFlow> flows = {};
  bool shares = false;  // other jobs are on the links too; the step is that of the first job
};

// Fills result.links and result.tiers. Requires: result.step_time is set.
void fill_link_use(const RunStep& step, StepResult& result);

// Fills result.collisions: lanes that a routing slows down.
void fill_collisions(const RunStep& step, StepResult& result);

// The load of the most used link of every network tier over time, GB/s, as counters of the cluster
// for a trace: "tor-pod: ToR 12 up". A transfer counts at its mean rate from its start to its end,
// a flow to or from the store at the rate it has at every instant; those of other jobs do not count.
// Requires: the outcome has moves, that is, a rank was traced.
std::vector<Counter> link_counters(const RunStep& step);

// What went to the store and came from it, for a row of the trace's cluster.
std::vector<ClusterSpan> storage_spans(const RunStep& step);

}  // namespace herdsim

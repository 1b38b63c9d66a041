// Turns what the executor recorded of rank classes into the trace of the ranks that were asked for.
#pragma once

#include <vector>

#include "sim/costing/cost_pass.h"
#include "sim/executor/step_executor.h"
#include "sim/fabric/fabric.h"
#include "sim/observe/span.h"
#include "sim/symmetry/folded_job.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// A rank shows what its class did. A compute op becomes one span a kernel, each with its share of the op's time, so that
// transfers taking SMs stretch them evenly. `ranks` ascending; `traced` are their classes, in the outcome's order.
StepTrace make_step_trace(const Scenario& scenario, const OpGraph& graph, const CostedGraph& costs,
                          const FoldedJob& job, const Fabric& fabric,
                          const TypedVector<RankId, GpuId>& placement,
                          const std::vector<RankId>& ranks, const std::vector<RankClassId>& traced,
                          const StepOutcome& outcome);

// The ranks worth looking at in a job too large to show whole: every stage's first rank of the first replica, and the
// first rank of every `degraded` part's replica.
std::vector<RankId> sampled_ranks(const Scenario& scenario);

}  // namespace herdsim

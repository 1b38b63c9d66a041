// Which ops decide how long a step takes, and how long it would take without one of its losses.
#pragma once

#include <vector>

#include "tools/simulation/link_use.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// Whether the records of all ops fit: 64 million of them are 2 GB.
bool keeps_records(const OpGraph& graph, const FoldedJob& job);

// Requires: the outcome has records.
std::vector<CriticalOp> critical_ops(const RunStep& step, const CostedGraph& costs);

// Of each term that takes part of the step. Transfers take no time, but their members still meet; kernels, the host and
// the optimizer lose the term's share; GPUs all run at the nominal speed. What cannot be simulated away is bounded: of
// the bubble no rank can be rid of more than it has, so the rank that has least decides; of the loader all that is waited
// for. Complexity: a simulation a term.
std::vector<StepWithout> steps_without(const RunStep& step, const CostedGraph& costs,
                                       const Multiprocessors& sms, const StepResult& result);

}  // namespace herdsim

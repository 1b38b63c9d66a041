// From kernels to passes: the picture of the pipeline, and memory over time.
#pragma once

#include <vector>

#include "sim/observe/schedule_pass.h"
#include "sim/observe/span.h"
#include "workloads/memory/memory_footprint.h"

namespace herdsim {

// Consecutive compute spans of one phase, micro-batch and chunk are one pass. Of every stage the
// rank with dp, cp and tp 0, where it is traced; by stage, then begin. The stage runs its
// schedule's order, so the n-th pass has the memory of the n-th pass of that order. Complexity:
// linear in the spans.
std::vector<SchedulePass> schedule_passes(const StepTrace& trace, const MemoryQuestion& memory);

}  // namespace herdsim

// What a trace shows besides spans: counters, the critical path, what waits were for.
#pragma once

#include <vector>

#include "sim/observe/schedule_pass.h"
#include "sim/observe/trace_overlay.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// Of each rank that has passes its memory; of each traced rank the rate of what it puts on the network: a transfer's
// bytes evenly over its span.
void add_counters(const std::vector<SchedulePass>& passes, StepTrace& trace);

// Requires: the step's trace; its critical path where that was asked for. A compute span waited for the span of another
// stream of its rank that ended when it began; the longest kMostWaits are kept.
// Complexity: n log n in the spans.
inline constexpr size_t kMostWaits = 2'000;
TraceOverlay trace_overlay(const StepSimulation& step);

}  // namespace herdsim

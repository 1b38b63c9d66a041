// The clock of GPUs under a power cap of their own.
#pragma once

#include <functional>

#include "tools/simulation/simulate_step.h"
#include "tools/validation/row_scenario.h"

namespace herdsim {

// The lowest clock over nominal that a GPU has (assumed: 210 of 1,980 MHz). Rows that would run lower are left out.
constexpr double kLeastClock = 0.106;

// A clock over nominal that sustains itself, to a thousandth: x with sustained(x) = x. Follows x -> sustained(x) from
// `first` as long as the difference at least halves each round, and then halves the interval in which there must be
// one: sustained(0) >= 0 and sustained(1) <= 1, so a continuous one crosses; of one that jumps across, the place of
// the jump. At most 30 calls.
// Requires: sustained() in [0, 1] and `first` in (0, 1]. Ensures: 0 where it is below kLeastClock.
double settled_clock(double first, const std::function<double(double)>& sustained);

// Gives GPUs under a power cap the clock of what they do: simulates the step and sets the clock to what its mix of
// products, memory-bound kernels and waiting sustains, until it stays (settled_clock()). Does nothing where there is
// no cap. A cap under which the step has no clock is a reason in skipped_because.
// Requires: a scenario. Throws: as simulate_step().
void settle_clock(RowScenario& row, MachineMemo& machines);

}  // namespace herdsim

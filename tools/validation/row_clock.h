// The clock of GPUs under a power cap of their own.
#pragma once

#include "tools/simulation/simulate_step.h"
#include "tools/validation/row_scenario.h"

namespace herdsim {

// Gives GPUs under a power cap the clock of what they do: simulates the step and sets the clock to what its mix of products,
// memory-bound kernels and waiting sustains, until it stays. Does nothing where there is no cap.
// Requires: a scenario. Throws: as simulate_step().
void settle_clock(RowScenario& row, MachineMemo& machines);

}  // namespace herdsim

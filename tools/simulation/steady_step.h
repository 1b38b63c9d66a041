// A step of many micro-batches by two of few (sim/executor/steady_state.h).
#pragma once

#include <optional>

#include "tools/simulation/machine_memo.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// Nothing where that is not exact, or saves little. Requires: nobody else on the machine. What the
// answer holds beside `result` is of the shorter step.
std::optional<StepSimulation> simulate_steady(MachineMemo::Known& machine, const Scenario& scenario,
                                              const StepOptions& options);

}  // namespace herdsim

// Puts results into the run database, with everything needed to run them again.
#pragma once

#include "tools/herdsim/options.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// The step, and its spans where it was traced. Throws: SpecError with the path.
void record_step(const Scenario& scenario, const StepSimulation& simulation, const Options& options);

}  // namespace herdsim

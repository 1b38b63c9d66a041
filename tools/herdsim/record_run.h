// Puts results into the run database, with everything needed to run them again.
#pragma once

#include "sim/job/campaign_trace.h"
#include "sim/metrics/run_result.h"
#include "tools/herdsim/options.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// The step, and its spans where it was traced. Throws: SpecError with the path.
void record_step(const Scenario& scenario, const StepSimulation& simulation, const Options& options);

// Weeks of training: the step, the run's figures as metrics "run.*", and what failed in the first
// replica. Throws: SpecError with the path.
void record_run(const Scenario& scenario, const StepResult& step, const RunResult& run,
                const CampaignTrace& trace, const Options& options);

}  // namespace herdsim

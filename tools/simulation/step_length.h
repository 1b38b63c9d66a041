// How long a step may be: longer ones are refused as bad input, before and after they are
// simulated.
//
// Times are 64-bit nanoseconds, and a step's account sums those of all ranks: 562,949 s for 16,384
// GPUs. The executor also counts work in nanoseconds times parts of an SM. Jobs that share a machine
// repeat their steps until the longest has ended one.
#pragma once

#include <vector>

#include "sim/metrics/step_result.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/job_on_machine.h"

namespace herdsim {

Duration longest_step(const Scenario& scenario);

// Throws: SpecError that names the work which takes most of a rank's time, where the kernels of a
// stage alone take longer on the slowest GPU.
void check_work_length(const JobOnMachine& job);

// Throws: SpecError where the step takes longer.
void check_step_length(const Scenario& scenario, Duration step);

// Of the jobs of a machine, each alone. Throws: SpecError where the shortest step would be repeated
// too often.
void check_repeated_steps(const Scenario& scenario, const std::vector<JobShare>& jobs);

}  // namespace herdsim

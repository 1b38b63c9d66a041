// From what the executor ran to what a step says: time account, memory, use of links, warnings,
// trace.
#pragma once

#include <span>
#include <vector>

#include "tools/simulation/job_on_machine.h"
#include "tools/simulation/link_use.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// What is on the links beside a job's own step.
struct Company {
  std::span<const BesideFlow> flows = {};
  bool other_jobs = false;
};

// Takes the job's graph and costs: nothing needs them any more. The job may be a shorter one that
// the outcome was found by: what does not depend on the number of micro-batches is its. Throws:
// SpecError where the step cannot end, or is longer than anybody counts.
StepSimulation answer(const Scenario& scenario, JobOnMachine& job, const MachineState& machine,
                      const FoldedJob& folded, const StepOutcome& outcome,
                      const StepOptions& options, const Company& company = {});

// The classes of the ranks that are traced, each once.
std::vector<RankClassId> traced_classes(const FoldedJob& folded, const StepOptions& options);

// What a step of that length waits for its data beyond it. A loader that may be ahead hides behind
// the step, and limits its rate where it is slower; one that may not comes on top. Throws:
// SpecError where both together are too long.
Duration loader_wait(const Scenario& scenario, Duration step);

// All ranks wait that much longer for data.
void add_wait(Duration wait, StepResult& result);

}  // namespace herdsim

// A step with the spans of the ranks that were asked for, as many as a file may hold, and that file.
#pragma once

#include <string>
#include <vector>

#include "tools/scenario/scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

struct TracedStep {
  StepSimulation simulation;
  std::string note;  // which ranks it shows and why not all that were wanted: a sentence
};

// `wanted` ascending and not empty. Where all of them would take more than `budget` bytes as a file, those worth most are
// kept: degraded ranks, then sampled_ranks (every stage's first rank of the first replica and of replicas with degraded
// parts), then the others; of the first of these that does not fit whole every k-th. How much a rank takes is known when a step has been
// simulated with some of them, so a larger job is simulated twice, and never holds the spans of all its ranks.
TracedStep simulate_traced(const Scenario& scenario, const StepOptions& options,
                           const std::vector<RankId>& wanted, Bytes budget);

// Writes the trace with critical path, waits and notes to `path`; with fewer ranks once more should the file be larger
// than the budget after all. Returns the ranks it has and its size, for people: "16 ranks, 1.2 MB".
// Throws: SpecError with the path.
std::string write_step_trace(const Scenario& scenario, const StepOptions& options,
                             TracedStep& step, const std::vector<RankId>& wanted, Bytes budget,
                             const std::string& path);

}  // namespace herdsim

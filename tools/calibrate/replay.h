// Runs a step's own ops on a machine, to see whether the simulator predicts them.
#pragma once

#include <functional>
#include <vector>

#include "calibrate/harness/backend.h"
#include "sim/opgraph/op_graph.h"

namespace herdsim {

// Seconds of each of `steps` steps after one of warm-up, the slowest rank's. Ops run one after
// another in the graph's order, so the scenario must not ask for overlap. Requires: one pipeline
// stage; as many ranks as the graph has; only kernels and collectives of all ranks.
// Throws: SpecError naming what cannot be replayed.
std::vector<double> replay_steps(const OpGraph& graph, Backend& backend, int64_t steps,
                                 const std::function<double()>& clock);

}  // namespace herdsim

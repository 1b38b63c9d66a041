// The probes that a scenario's step is made of.
#pragma once

#include <vector>

#include "calibrate/harness/backend.h"
#include "sim/opgraph/op_graph.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// The work of a scenario's step, as the simulator lowers it.
OpGraph graph_of(const Scenario& scenario);

// Every product (also in its forward layout, on which the others' rates stand), attention, stream
// and collective of the graph once, collectives also at sizes around theirs; and the launch and the
// peak.
std::vector<Probe> probes_of(const OpGraph& graph);

// The probe that runs a kernel; its `repeats` are the caller's.
Probe probe_of(const Kernel& kernel);
Probe probe_of_transfer(const Work& work);

}  // namespace herdsim

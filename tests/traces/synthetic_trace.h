// Step traces with known content for tests and benchmarks.
#pragma once

#include "sim/observe/span.h"

namespace herdsim {

// A one-forward-one-backward pipeline: `stages` ranks, `micro_batches` of them, each a few
// microseconds long, with sends that overlap their receives, a memory counter a rank and one of the
// cluster.
StepTrace pipeline_trace(int stages, int micro_batches);

// Lanes filled from a generator: adjacent, distant and zero-length spans, flows of every overlap,
// long names.
StepTrace random_trace(uint64_t seed, int ranks, int spans_per_lane);

}  // namespace herdsim

// What PyTorch's caching allocator would print of a row's run, as published tables do. Beside it
// lie the device's context and the communicators' buffers, which `step` counts and these do not.
#pragma once

#include <optional>

#include "sim/base/units.h"
#include "tools/scenario/scenario.h"
#include "tools/validation/run_table.h"

namespace herdsim {

struct RowMemory {
  Bytes reserved;   // torch.cuda.max_memory_reserved(): the peak, with what fragmentation wastes
  Bytes allocated;  // torch.cuda.max_memory_allocated()
};

// Of the rank that prints. nanotron's is rank 0, of the first stage, which resets the statistics
// after the passes of a step: what it prints as allocated is the peak of the optimizer's step
// (huggingface/nanotron helpers.py, log_throughput; logging/base.py, log_memory). Elsewhere it is
// the largest of all ranks.
//
// Requires: a scenario that could be simulated.
RowMemory allocator_memory(const Scenario& scenario);

// What the row states, reserved before allocated, and ours. Nothing where it states neither, or
// where the allocator filled more than three quarters of the device: there it gives blocks back
// before it fails, and the figure says nothing.
struct MemoryComparison {
  Bytes predicted, measured;
};
std::optional<MemoryComparison> compare_memory(const RunRow& row, const RowMemory& predicted,
                                               Bytes device);

}  // namespace herdsim

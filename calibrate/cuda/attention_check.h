// A fused attention's result in device memory against double precision.
#pragma once

#include <vector>

#include "sim/models/kernel.h"

namespace herdsim::cuda {

// `tensors`: pointers in the order of FusedAttention, after a run. Compares rows where a mask that
// is one token off is far off: the second query or the last key but one, and rows in the middle, of
// the last head.
// Throws: std::runtime_error naming what differs by more than bf16 rounds.
void check_attention(const AttentionShape& shape, const std::vector<void*>& tensors);

}  // namespace herdsim::cuda

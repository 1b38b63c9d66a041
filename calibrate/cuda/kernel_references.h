// Own kernels against double precision on small random inputs.
#pragma once

#include <cstddef>

namespace herdsim::cuda {

// Throws: std::runtime_error naming the first kernel that differs by more than bf16 rounds.
// Requires: an even width.
void check_own_kernels(size_t rows, size_t width);

}  // namespace herdsim::cuda

// Own kernels against double precision on small random inputs.
#pragma once

namespace herdsim::cuda {

// Throws: std::runtime_error naming the first kernel that differs by more than bf16 rounds.
void check_own_kernels();

}  // namespace herdsim::cuda

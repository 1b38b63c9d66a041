// A GPU's threads on the processor, for kernels that end: blocks one after another, and in a block
// all threads in turn, each from one barrier to the next. A .cu file that includes nothing but
// cuda_bf16.h is compiled as C++ after this header.
//
// Shuffles are taken to be of whole warps. Shared memory is static: one block runs at a time.
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <functional>

#undef __global__
#undef __device__
#undef __shared__
#define __global__
#define __device__
#define __shared__ static

namespace herdsim::cuda {

struct EmulatedIndex {
  unsigned x = 0;
};
// Of the thread that runs.
extern EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

// The order in which threads get to a barrier, which a kernel must not depend on: rising or
// falling.
extern bool last_thread_first;

// Throws: std::logic_error where a thread ended before a barrier that others wait at.
void run_grid(unsigned blocks, unsigned threads, const std::function<void()>& thread);
void wait_for_block();
float shuffled_down(float value, unsigned lanes);

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, void* /*stream*/,
            Arguments... arguments) {
  run_grid(blocks, threads, [&] { kernel(arguments...); });
}

inline void __syncthreads() { wait_for_block(); }
inline float __shfl_down_sync(unsigned /*lanes*/, float value, unsigned offset) {
  return shuffled_down(value, offset);
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline float fast_expf(float x) { return std::exp(x); }
inline void fast_sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}

}  // namespace herdsim::cuda

// The C library has others of these names.
#define __expf fast_expf
#define __sincosf fast_sincosf

// Kernels that end when the host says so; apart from those that end by themselves, which tests run on the processor.
#include "calibrate/cuda/cuda_kernels.h"

namespace herdsim::cuda {
namespace {

// As much shared memory as keeps other blocks off the multiprocessor, as NCCL's blocks do; registers as well.
constexpr int kCopyThreads = 512;
constexpr int kCopyShared = 96 << 10;
__global__ void __launch_bounds__(kCopyThreads, 1)
    copy_until_kernel(const uint4* from, uint4* to, size_t count, const volatile int* stop, volatile int* started) {
  extern __shared__ uint4 held[];
  if (threadIdx.x == 0) {
    held[0] = from[0];
    started[blockIdx.x] = 1;
    __threadfence_system();
  }
  // Asking the host costs a microsecond: not for every element.
  constexpr int kCopiesAnAsk = 256;
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  while (*stop == 0) {
    for (int c = 0; c < kCopiesAnAsk; ++c, i += stride) to[i % count] = from[i % count];
  }
}

// One thread, whose patience ends: what the host does meanwhile may itself wait for the device.
constexpr long long kPatience = 2'000'000'000;  // clocks
__global__ void hold_kernel(const volatile int* go) {
  const long long begin = clock64();
  while (*go == 0 && clock64() - begin < kPatience) {
  }
}

}  // namespace

void hold_until(const int* go, Stream stream) { hold_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(go); }

void copy_until(const void* from, void* to, size_t bytes, int blocks, const int* stop, int* started, Stream stream) {
  cudaFuncSetAttribute(copy_until_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kCopyShared);
  copy_until_kernel<<<static_cast<unsigned>(blocks), kCopyThreads, kCopyShared, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const uint4*>(from), static_cast<uint4*>(to), bytes / sizeof(uint4), stop, started);
}

}  // namespace herdsim::cuda

#include "tests/calibrate/cuda/emulated_gpu.h"

#include <cuda_runtime_api.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace herdsim::cuda {

EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;
bool last_thread_first = false;

namespace {

constexpr unsigned kWarp = 32;
constexpr size_t kStack = size_t{64} << 10;

struct Thread {
  ucontext_t context;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStack);
  bool ended = false;
};

// The block that runs: one at a time in a process.
struct Block {
  ucontext_t scheduler;
  std::vector<Thread> threads;
  std::vector<float> shuffled;
  const std::function<void()>* body = nullptr;
};
Block block;

void run_thread() {
  (*block.body)();
  block.threads[threadIdx.x].ended = true;
}

void run_block() {
  for (Thread& thread : block.threads) {
    thread.ended = false;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.get();
    thread.context.uc_stack.ss_size = kStack;
    thread.context.uc_link = &block.scheduler;
    makecontext(&thread.context, run_thread, 0);
  }
  for (size_t ended = 0; ended < block.threads.size();) {
    ended = 0;
    for (size_t turn = 0; turn < block.threads.size(); ++turn) {
      const size_t i = last_thread_first ? block.threads.size() - 1 - turn : turn;
      threadIdx.x = static_cast<unsigned>(i);
      swapcontext(&block.scheduler, &block.threads[i].context);
      ended += block.threads[i].ended ? 1 : 0;
    }
    if (ended > 0 && ended < block.threads.size())
      throw std::logic_error("a thread ended before a barrier that others wait at");
  }
}

}  // namespace

void run_grid(unsigned blocks, unsigned threads, const std::function<void()>& thread) {
  block.body = &thread;
  block.threads = std::vector<Thread>(threads);
  block.shuffled.assign(threads, 0);
  blockDim.x = threads;
  gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) run_block();
}

void wait_for_block() { swapcontext(&block.threads[threadIdx.x].context, &block.scheduler); }

// All have written before any reads, and all have read before any writes again.
float shuffled_down(float value, unsigned lanes) {
  const unsigned self = threadIdx.x;
  block.shuffled[self] = value;
  wait_for_block();
  const float other = self % kWarp + lanes < kWarp ? block.shuffled[self + lanes] : value;
  wait_for_block();
  return other;
}

}  // namespace herdsim::cuda

// As much of CUDA's runtime as references need; the emulated device's memory is the processor's.
extern "C" {

cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = std::malloc(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind /*kind*/) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* data, int value, size_t bytes) {
  std::memset(data, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

}  // extern "C"

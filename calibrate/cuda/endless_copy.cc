#include "calibrate/cuda/endless_copy.h"

#include <chrono>
#include <new>

#include "calibrate/cuda/cuda_kernels.h"

namespace herdsim::cuda {
namespace {

constexpr size_t kBytes = size_t{256} << 20;  // several times the last cache
constexpr std::chrono::seconds kPatience(1);

}  // namespace

EndlessCopy::EndlessCopy(int multiprocessors)
    : multiprocessors_(multiprocessors), from_(kBytes), to_(kBytes) {
  // Of the highest priority, as NCCL's kernels are, so that its blocks are placed first.
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest));
  void* host = nullptr;
  check(cudaHostAlloc(&host, sizeof(Flags), cudaHostAllocMapped));
  flags_ = new (host) Flags;
  fill_random(from_.get(), kBytes / 2, 1, stream_);
}

void EndlessCopy::start() {
  stop();
  flags_->stop = 0;
  for (volatile int& started : flags_->started) started = 0;
  auto* flags = const_cast<Flags*>(flags_);
  copy_until(from_.get(), to_.get(), kBytes, multiprocessors_, &flags->stop, flags->started,
             stream_);
  check(cudaGetLastError());
  const auto begin = std::chrono::steady_clock::now();
  while (!all_started()) {
    if (std::chrono::steady_clock::now() - begin < kPatience) continue;
    stop();
    throw std::runtime_error("a copy beside products does not start");
  }
}

bool EndlessCopy::all_started() const {
  for (int block = 0; block < multiprocessors_; ++block) {
    if (flags_->started[block] == 0) return false;
  }
  return true;
}

void EndlessCopy::stop() {
  flags_->stop = 1;
  cudaStreamSynchronize(stream_);
}

EndlessCopy::~EndlessCopy() {
  stop();
  cudaStreamDestroy(stream_);
  cudaFreeHost(const_cast<Flags*>(flags_));
}

}  // namespace herdsim::cuda

#include "calibrate/cuda/stream_hold.h"

#include <new>

#include "calibrate/cuda/cuda_kernels.h"

namespace herdsim::cuda {

StreamHold::StreamHold() {
  void* host = nullptr;
  check(cudaHostAlloc(&host, sizeof(int), cudaHostAllocMapped));
  go_ = new (host) int(1);
}

StreamHold::~StreamHold() {
  let_go();
  cudaFreeHost(const_cast<int*>(go_));
}

void StreamHold::keep(cudaStream_t stream) {
  *go_ = 0;
  hold_until(const_cast<int*>(go_), stream);
}

}  // namespace herdsim::cuda

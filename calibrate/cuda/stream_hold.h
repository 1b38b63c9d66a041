// Keeps a stream waiting while work is put into it, so that short kernels then follow each other
// without a wait for the processor that launches them.
//
//   hold.keep(stream);
//   ... at most a few hundred launches: a full queue waits for the stream, in vain
//   hold.let_go();
//
// Where something in between waits for the device, the hold ends after about a second by itself.
#pragma once

#include "calibrate/cuda/cuda_check.h"

namespace herdsim::cuda {

class StreamHold {
 public:
  StreamHold();
  ~StreamHold();
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;

  // Requires: what was kept before has been let go and has ended.
  void keep(cudaStream_t stream);
  void let_go() { *go_ = 1; }

 private:
  volatile int* go_ = nullptr;  // the host's, seen by the device
};

}  // namespace herdsim::cuda

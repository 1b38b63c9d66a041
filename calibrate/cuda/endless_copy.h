// A copy in device memory that goes on until it is told to stop, on some multiprocessors: what a
// transfer takes from the kernels beside it, without a second GPU.
//
//   EndlessCopy copy(24);      // runs when the constructor returns
//   ... kernels on another stream
//   copy.stop();               // or its destructor
#pragma once

#include "calibrate/cuda/cuda_check.h"

namespace herdsim::cuda {

class EndlessCopy {
 public:
  // Throws: std::runtime_error where the device does not start it in a second.
  explicit EndlessCopy(int multiprocessors);
  ~EndlessCopy();
  EndlessCopy(const EndlessCopy&) = delete;
  EndlessCopy& operator=(const EndlessCopy&) = delete;

  void stop();

 private:
  struct Flags {
    int stop = 0, started = 0;
  };
  DeviceMemory from_, to_;
  cudaStream_t stream_ = nullptr;
  volatile Flags* flags_ = nullptr;  // the host's, seen by the device
};

}  // namespace herdsim::cuda

// A copy in device memory that goes on until it is told to stop, on some multiprocessors: what a
// transfer takes from the kernels beside it, without a second GPU.
//
//   EndlessCopy copy(24);
//   copy.start();              // it runs when this returns
//   ... kernels on another stream
//   copy.stop();               // or its destructor
//
// While it runs nothing may wait for the whole device: it would wait for ever.
#pragma once

#include "calibrate/cuda/cuda_check.h"

namespace herdsim::cuda {

class EndlessCopy {
 public:
  // Requires: at most 64.
  explicit EndlessCopy(int multiprocessors);
  ~EndlessCopy();
  EndlessCopy(const EndlessCopy&) = delete;
  EndlessCopy& operator=(const EndlessCopy&) = delete;

  // Throws: std::runtime_error where the device does not start it in a second.
  void start();
  void stop();

 private:
  static constexpr int kMost = 64;
  // By block, and no counter: few hosts have atomics that a device may use.
  struct Flags {
    int stop = 0;
    int started[kMost] = {};
  };
  bool all_started() const;

  int multiprocessors_;
  DeviceMemory from_, to_;  // random numbers
  cudaStream_t stream_ = nullptr;
  volatile Flags* flags_ = nullptr;  // the host's, seen by the device
};

}  // namespace herdsim::cuda

// CUDA's, cuBLAS's, cuDNN's and NCCL's status codes as exceptions, and memory on the device.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nccl.h>

#include <stdexcept>
#include <string>

namespace herdsim::cuda {

inline void check(cudaError_t status) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}
inline void check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLAS: ") + cublasLtGetStatusString(status));
}
inline void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuDNN: ") + cudnnGetErrorString(status));
}
inline void check(ncclResult_t status) {
  if (status != ncclSuccess)
    throw std::runtime_error(std::string("NCCL: ") + ncclGetErrorString(status));
}

// Bytes on the device that is current when it is made.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(size_t bytes) { check(cudaMalloc(&data_, bytes)); }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* get() const { return data_; }
  void* at(size_t bytes) const { return static_cast<char*>(data_) + bytes; }

 private:
  void* data_ = nullptr;
};

}  // namespace herdsim::cuda

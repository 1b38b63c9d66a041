// A matrix product by cuBLASLt, or as many of one size as the shape has groups: bf16 or fp8 in,
// fp32 sums, in the layouts of a linear layer.
#pragma once

#include <cublasLt.h>

#include "calibrate/cuda/cuda_check.h"
#include "sim/models/kernel.h"

namespace herdsim::cuda {

class Matmul {
 public:
  // Takes cuBLASLt's first choice for the shape. `scale` is a float 1 on the device, for fp8.
  // Throws: std::runtime_error where it has none.
  Matmul(cublasLtHandle_t handle, const GemmShape& shape, const float* scale, void* workspace,
         size_t workspace_bytes);
  ~Matmul();
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  // a, b, c as the harness's host kernels have them, row by row.
  void run(const void* a, const void* b, void* c, cudaStream_t stream) const;

 private:
  cublasLtHandle_t handle_;
  GemmPass pass_;
  void* workspace_;
  size_t workspace_bytes_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, out_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
};

}  // namespace herdsim::cuda

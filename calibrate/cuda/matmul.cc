#include "calibrate/cuda/matmul.h"

#include <algorithm>
#include <array>

namespace herdsim::cuda {
namespace {

// `groups` of them, one after the other.
cublasLtMatrixLayout_t layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t groups) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), rows));
  if (groups == 1) return made;
  const auto count = static_cast<int32_t>(groups);
  const int64_t stride = rows * columns;
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                         sizeof(count)));
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof(stride)));
  return made;
}

}  // namespace

// cuBLAS counts by columns, so the row-major product C = A B is asked for as C' = B' A'.
Matmul::Matmul(cublasLtHandle_t handle, const GemmShape& s, const float* scale, void* workspace,
               size_t workspace_bytes)
    : handle_(handle), pass_(s.pass), workspace_(workspace), workspace_bytes_(workspace_bytes) {
  check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cudaDataType_t type = s.dtype == DataType::kFp8 ? CUDA_R_8F_E4M3 : CUDA_R_16BF;
  // Weights' gradients are summed over micro-batches in fp32.
  const cudaDataType_t out = s.pass == GemmPass::kWgrad ? CUDA_R_32F : CUDA_R_16BF;
  const cublasOperation_t left = s.pass == GemmPass::kForward ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t right = s.pass == GemmPass::kWgrad ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(
      cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof(left)));
  check(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSB, &right,
                                       sizeof(right)));
  if (s.dtype == DataType::kFp8) {
    for (const auto pointer :
         {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
      check(cublasLtMatmulDescSetAttribute(operation_, pointer, &scale, sizeof(scale)));
  }
  left_ = left == CUBLAS_OP_T ? layout(type, s.k, s.n, s.groups) : layout(type, s.n, s.k, s.groups);
  right_ =
      right == CUBLAS_OP_T ? layout(type, s.m, s.k, s.groups) : layout(type, s.k, s.m, s.groups);
  out_ = layout(out, s.n, s.m, s.groups);
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference));
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof(workspace_bytes)));
  std::array<cublasLtMatmulHeuristicResult_t, 8> choices{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, operation_, left_, right_, out_, out_, preference,
                                     static_cast<int>(choices.size()), choices.data(), &found);
  cublasLtMatmulPreferenceDestroy(preference);
  const auto choice = std::find_if(choices.begin(), choices.begin() + found,
                                   [](const auto& c) { return c.state == CUBLAS_STATUS_SUCCESS; });
  if (status != CUBLAS_STATUS_SUCCESS || choice == choices.begin() + found) {
    throw std::runtime_error(std::string("cuBLASLt has no kernel for a product: ") +
                             cublasLtGetStatusString(status));
  }
  choice_ = *choice;
}

Matmul::~Matmul() {
  cublasLtMatrixLayoutDestroy(left_);
  cublasLtMatrixLayoutDestroy(right_);
  cublasLtMatrixLayoutDestroy(out_);
  cublasLtMatmulDescDestroy(operation_);
}

void Matmul::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  const float one = 1, keep = pass_ == GemmPass::kWgrad ? 1 : 0;
  check(cublasLtMatmul(handle_, operation_, &one, b, left_, a, right_, &keep, c, out_, c, out_,
                       &choice_.algo, workspace_, workspace_bytes_, stream));
}

}  // namespace herdsim::cuda

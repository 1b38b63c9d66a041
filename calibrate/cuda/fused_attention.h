// cuDNN's fused attention as one graph operation, forward or backward, without a mask.
//
// cuDNN's graph interface: tensors by descriptors with an id each, one operation that joins them,
// the heuristic's first engine, and a plan that runs on pointers by id.
#pragma once

#include <cudnn.h>

#include <array>
#include <vector>

#include "calibrate/cuda/cuda_check.h"
#include "sim/models/kernel.h"

namespace herdsim::cuda {

class FusedAttention {
 public:
  // Throws: std::runtime_error where this cuDNN has no engine for the shape.
  FusedAttention(cudnnHandle_t handle, const AttentionShape& shape);
  ~FusedAttention();
  FusedAttention(const FusedAttention&) = delete;
  FusedAttention& operator=(const FusedAttention&) = delete;

  // Forward: q, k, v, out, stats. Backward: q, k, v, out, stats, dout, dq, dk, dv.
  static constexpr size_t kForwardTensors = 5, kBackwardTensors = 9;
  size_t tensors() const { return ids_.size(); }
  size_t bytes_of(size_t tensor) const { return bytes_[tensor]; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  void run(const std::vector<void*>& pointers, const float* scale, void* workspace) const;

 private:
  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type);
  cudnnBackendDescriptor_t tensor(int64_t id, cudnnDataType_t type,
                                  const std::array<int64_t, 4>& sizes, bool by_value = false);
  void finalize_plan(cudnnBackendDescriptor_t operation);

  cudnnHandle_t handle_;
  std::vector<cudnnBackendDescriptor_t> made_;  // destroyed last first
  std::vector<int64_t> ids_;
  std::vector<size_t> bytes_;
  cudnnBackendDescriptor_t plan_ = nullptr;
  size_t workspace_bytes_ = 0;
};

}  // namespace herdsim::cuda

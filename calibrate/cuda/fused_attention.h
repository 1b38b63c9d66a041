// Fused attention by cuDNN, forward or backward, full or causal, with as many or fewer key heads
// than query heads.
//
// cuDNN is given the formula as a graph of its operations and finds the flash-attention kernel that
// computes it: it compiles one whose pattern the graph is, so their order is the documented one
// (https://docs.nvidia.com/deeplearning/cudnn, "Attention"). With S = scale Q K', masked,
//   forward   P = exp(S - max) / sum,  O = P V,  stats = max + log sum
//   backward  P = exp(S - stats),  D = rows of dO O,  dS = P (dO V' - D) scale,
//             dV = P' dO,  dK = dS' Q,  dQ = dS K
// dK and dV of query heads that share a key head are summed.
#pragma once

#include <vector>

#include "calibrate/cuda/cudnn_graph.h"
#include "sim/models/kernel.h"

namespace herdsim::cuda {

class FusedAttention {
 public:
  // Requires: a mask that is full or causal, and causal only of as many queries as keys.
  // Throws: std::runtime_error where this cuDNN has no engine for the shape.
  FusedAttention(const CudnnTarget& target, const AttentionShape& shape);

  // Forward: q, k, v, out, stats. Backward: q, k, v, out, stats, dout, dq, dk, dv. Each row by row:
  // batch, heads, tokens, head dimension; bf16, but stats in fp32.
  static constexpr size_t kForwardTensors = 5, kBackwardTensors = 9, kStats = 4;
  size_t tensors() const { return bytes_.size(); }
  size_t bytes_of(size_t tensor) const { return bytes_[tensor]; }
  // Of the plan, and what the backward pass keeps between its steps.
  size_t workspace_bytes() const;
  int64_t engine() const { return plan_->engine(); }

  // Pointers in the order of the tensors, for run().
  size_t bind(const std::vector<void*>& pointers, void* workspace);
  void run(cudnnHandle_t handle, size_t bound) const { plan_->run(handle, bound); }

 private:
  struct Part {
    int64_t id = 0;
    size_t bytes = 0;
  };
  std::vector<int64_t> ids_;
  std::vector<size_t> bytes_;
  std::vector<Part> between_;  // in the workspace, after the plan's own
  std::unique_ptr<CudnnPlan> plan_;
};

}  // namespace herdsim::cuda

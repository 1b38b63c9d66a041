// Parameters that one rank computes with of one layer: divided by tensor and expert parallelism,
// not by data parallelism.
//
//   matrices  attention and the dense or shared feed-forward layers, over TP. With more tensor
//             ranks than key heads each has a whole key head: keys and values are on several.
//   whole     norms, the router and the projections to latents: on every tensor rank
//   experts   routed experts, over EP and the tensor ranks of an expert
#pragma once

#include <algorithm>
#include <cstdint>

#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

struct LayerParameters {
  int64_t matrices = 0, whole = 0, experts = 0;

  int64_t dense() const { return matrices + whole; }
  int64_t total() const { return dense() + experts; }
};

// Key and value heads on one tensor rank.
inline int64_t kv_heads_on_rank(const ModelArchitecture& model, int64_t tp) {
  return std::max<int64_t>(1, model.kv_heads / tp);
}

// Requires: degrees that divide the model.
LayerParameters layer_parameters(const ModelArchitecture& model, const ParallelPlan& plan,
                                 bool with_experts);

}  // namespace herdsim

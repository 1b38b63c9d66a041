// What one token keeps of one layer for the backward pass, tensor by tensor.
//
// Counted for a pre-norm layer with grouped-query attention in a fused (flash) kernel, bf16. h
// hidden, q = heads * head size, k = KV heads * head size, f feed-forward width. Nothing is
// quadratic in the sequence: a fused kernel recomputes the scores, so the 5 a s / h term of
// Korthikanti et al. 2022 does not exist and recomputing "core attention" frees the log-sum-exp
// only (2 % in Megatron-LM issue 1225, where users expected 70 %).
//
//   tensor                         bytes a token   divided by TP     why it is kept
//   residual stream into norm 1    2 h             with SP           norm backward
//   norm 1 output                  2 h             with SP           weight gradient of QKV
//   Q after rotation               2 q             yes               attention backward
//   K, V                           4 k             yes               attention backward
//   attention output               2 q             yes               attention backward, weight
//   gradient of projection log-sum-exp                    4 a             yes attention backward (a
//   heads, fp32) residual stream into norm 2    2 h             with SP           norm backward
//   norm 2 output                  2 h             with SP           weight gradient of gate and up
//   gate, up                       4 f  (2 f)      yes               backward of the activation
//   function product                        2 f             yes               weight gradient of
//   down total                          8 h + 4 q + 4 k + 4 a + 6 f       (4 f where the MLP is not
//   gated)
//
// "with SP": sequence parallelism splits it over TP, without it every rank has it whole. A stack
// says what it keeps of this as `activation_hidden_bytes` (10: the four h tensors and the attention
// output) and `activation_ffn_bytes` (6); Q, K, V and the log-sum-exp are always kept. One that
// frees the norm outputs and the product, which cost no GEMM to compute again, has 6 and 4. What is
// freed is back during the pass of its layer, one layer at a time.
//
// Selective recomputation frees what its modules make (RecomputeModule): core attention the
// log-sum-exp, norms their outputs, the activation function the product, the up-projections of
// latent attention Q, K and V, a feed-forward layer or experts all but their input.
//
// With fp8 products a stack may keep their inputs at a byte (norm outputs, product, tokens at
// experts: Transformer Engine v1.12, module/linear.py, saves the fp8 copy), gate and up as well
// (Megatron-LM's activation_func_fp8_input_store), and the attention output at 3 bytes, in bf16 for
// its kernel and in fp8 for the projection, or at 1.5 (E5M6). DeepSeek-V3 (arXiv:2412.19437, sections
// 3.2.3 and 3.3.3) does all of this: norms, up-projections and products made again, inputs, gate and
// up in fp8, the attention output in E5M6. Scales of blocks, 3 % of an fp8 tensor, are left out.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/models/software_stack.h"
#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

struct ActivationTensor {
  std::string_view name;
  double bytes = 0;  // a token, before tensor parallelism
  bool whole_without_sequence_parallel = false;
};

// The table above for one layer, all rows. A layer of experts has gate, up and product once an
// expert a token visits, the copy of the token that was sent there and what came back, which the
// gradient of the router's choice needs. Latent attention keeps the latents and K and V of every
// head.
std::vector<ActivationTensor> activation_tensors(const ModelArchitecture& model, bool with_experts);
inline std::vector<ActivationTensor> activation_tensors(const ModelArchitecture& model) {
  return activation_tensors(model, model.is_moe());
}

// Bytes a token of one micro-batch costs one rank of a tensor-parallel group, for one layer.
struct LayerActivations {
  double kept = 0;     // from the forward pass to the end of the backward pass
  double forward = 0;  // beside, during the forward pass of the layer
  double backward =
      0;  // beside, during its backward pass: what was freed, gradients, gathered inputs
};

struct LayerForm {
  bool recomputes = true;    // as training.recompute says, or else keeping everything
  bool with_experts = true;  // where the model has them
};

// Requires: a plan whose degrees divide the model. Selective recompute is that of core attention.
// Of the ranks that share out the experts this is the busiest one.
LayerActivations layer_activations(const ModelArchitecture& model, const ParallelPlan& plan,
                                   const Training& training, const SoftwareStack& software,
                                   const LayerForm& form = {});

}  // namespace herdsim

// The blocks of a layer as steps of a template: attention, the dense feed-forward layer, a mixture
// of experts.
//
// Tensor parallelism follows Megatron's sequence-parallel layer (Korthikanti et al. 2022):
// activations between the blocks are split by sequence; an all-gather precedes the column-parallel
// product, a reduce-scatter follows the row-parallel one, and the backward pass mirrors both and
// gathers the inputs again for the weight gradients. Without sequence parallelism each block has
// one all-reduce a pass.
//
// Context parallelism, by ContextParallel:
//   kAllGather  K and V are gathered before attention; dK and dV are reduced before the backward
//               pass of Q, K, V needs them
//   kRing       CP pieces of attention; the next K and V (backward, dK and dV too) arrive beside one
//   kAllToAll   Q, K, V change from all heads of a part of the sequence to some heads of all of it,
//               the output back
//
// A mixture of experts (Megatron Core's all-to-all dispatcher):
//   route and permute > all-to-all over EP > all-gather over TP > experts > reduce-scatter >
//   all-to-all > unpermute
// with the tensor-parallel pair only where tensor ranks share an expert. The busiest rank of the
// group decides how long the all-to-all takes; its experts have that much more to do
// (Uneven::kExperts).
#pragma once

#include <string_view>

#include "workloads/layer_kernels.h"
#include "workloads/work_template.h"

namespace herdsim {

// Which halves of a backward pass a template holds.
enum class BackwardPart : uint8_t { kBoth, kInput, kWeight };
inline bool has_input(BackwardPart part) { return part != BackwardPart::kWeight; }
inline bool has_weight(BackwardPart part) { return part != BackwardPart::kInput; }

struct BlockBuilder {
  TemplateBuilder& t;
  const LayerKernels& k;
  const WorkloadSpec& spec;
};

// How much of a block a recomputation makes again; a forward pass makes all of it.
struct AttentionParts {
  bool qkv = true, attention = true;
  bool from_latents = false;  // without `qkv`: queries, keys and values from latents that are there
  double projection = 1;  // share of the product
};
struct FeedForwardParts {
  double up = 1;  // share of the product; 0: only the activation function
  bool down = true;
};

// Each appends its steps after `at` and returns the step to wait for. `again` ends the names of
// what is recomputed.
int append_attention_forward(const BlockBuilder& b, int at, const AttentionParts& parts = {},
                             std::string_view again = "");
int append_attention_backward(const BlockBuilder& b, int at, BackwardPart part);

int append_dense_forward(const BlockBuilder& b, int at, const FeedForwardParts& parts = {},
                         std::string_view again = "");
int append_dense_backward(const BlockBuilder& b, int at, BackwardPart part);

// All shared experts.
int append_shared_experts_forward(const BlockBuilder& b, int at, std::string_view again = "");
int append_experts_forward(const BlockBuilder& b, int at, const FeedForwardParts& parts = {},
                           std::string_view again = "");
int append_experts_backward(const BlockBuilder& b, int at, BackwardPart part);

}  // namespace herdsim

// What one transformer layer, embedding or output head does on one rank, as a small template of work and order.
//
// A template is a list of steps; each names a piece of Work and the earlier steps it waits for (kBefore: whatever came
// before the template). Lowering stamps templates into programs once a layer and micro-batch.
//
// Tensor parallelism follows Megatron's sequence-parallel layer (Korthikanti et al. 2022): activations between the blocks
// are split by sequence; an all-gather precedes the column-parallel GEMM, a reduce-scatter follows the row-parallel one,
// and the backward pass mirrors both and gathers the inputs again for the weight gradients. Without sequence parallelism
// each block has one all-reduce a pass. Context parallelism gathers K and V before attention (Llama 3, section 3.3.2).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/models/software_stack.h"
#include "sim/opgraph/op_graph.h"
#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

constexpr int kBefore = -1;

struct TemplateStep {
  WorkId work;
  std::vector<int> after;  // indices into the template, or kBefore
};

using WorkTemplate = std::vector<TemplateStep>;

// Backward passes come whole or split, as zero-bubble schedules need them.
struct PassTemplates {
  WorkTemplate forward;
  WorkTemplate backward;         // input and weight gradients, and the recomputation where there is one
  WorkTemplate backward_input;   // the same without what only weight gradients need
  WorkTemplate backward_weight;  // the rest
};

struct WorkloadSpec {
  const ModelArchitecture& model;
  const ParallelPlan& plan;
  const Training& training;
  const SoftwareStack& software;

  // Tokens of one micro-batch on one tensor-parallel group.
  int64_t tokens() const { return plan.micro_batch * training.sequence_length / plan.cp; }
  // Bytes of one activation tensor [tokens, hidden] in bf16, and of the part of it that a rank sends to the next stage.
  Bytes activation() const { return Bytes(tokens() * model.hidden * 2); }
  // The same tensor as a tensor-parallel group gathers it before a product, or scatters it after one of the forward pass.
  Bytes linear_activation() const {
    const bool fp8 = software.tp_fp8_transfers && training.precision == DataType::kFp8;
    return activation() / (fp8 ? 2 : 1);
  }
  bool splits_sequence() const { return plan.sequence_parallel && plan.tp > 1; }
  Bytes stage_message() const { return splits_sequence() ? activation() / plan.tp : activation(); }
  // Parameters of one layer, of the embedding and of the head on one rank of the tensor-parallel group.
  int64_t layer_parameters() const {
    return model.layer_matrix_parameters() / plan.tp + model.norm_parameters_per_layer();
  }
  int64_t embedding_parameters() const { return model.embedding_parameters() / plan.tp; }
};

// Each appends the distinct pieces of work it needs to `works`.
// `recomputes`: as training.recompute says, or else keeping everything.
PassTemplates layer_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works,
                              bool recomputes = true);
PassTemplates embedding_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works);
// The last norm, the logits and the loss.
PassTemplates head_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works);

}  // namespace herdsim

// What a step is lowered from, and sizes that follow from it: activations and parameters on one
// rank.
#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/models/software_stack.h"
#include "workloads/layer_parameters.h"
#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

// The references must outlive it.
struct WorkloadSpec {
  const ModelArchitecture& model;
  const ParallelPlan& plan;
  const Training& training;
  const SoftwareStack& software;

  // Tokens of one micro-batch on one tensor-parallel group.
  int64_t tokens() const { return plan.micro_batch * training.sequence_length / plan.cp; }
  bool splits_sequence() const { return plan.sequence_parallel && plan.tp > 1; }
  // Of them on one rank between the blocks of a layer.
  int64_t local_tokens() const { return splits_sequence() ? tokens() / plan.tp : tokens(); }
  // Bytes in bf16 of a tensor [tokens, width], of [tokens, hidden], and of the part of it that a
  // rank sends to the next stage.
  Bytes activation(int64_t width) const { return Bytes(tokens() * width * 2); }
  Bytes activation() const { return activation(model.hidden); }
  // The same tensor as a tensor-parallel group gathers it before a product,
  Bytes gathered_activation(int64_t width) const {
    const bool fp8 = software.tp_fp8_transfers || software.tp_fp8_gathers;
    return activation(width) / (fp8 && training.precision == DataType::kFp8 ? 2 : 1);
  }
  Bytes gathered_activation() const { return gathered_activation(model.hidden); }
  // and scatters it after one of the forward pass.
  Bytes scattered_activation() const {
    const bool fp8 = software.tp_fp8_transfers && training.precision == DataType::kFp8;
    return activation() / (fp8 ? 2 : 1);
  }
  Bytes stage_message() const {
    return splits_sequence() || software.p2p_scatter_gather ? activation() / plan.tp : activation();
  }
  // Parameters of one layer, and of the embedding or head, on one rank of the tensor-parallel
  // group.
  int64_t layer_parameters() const {
    return herdsim::layer_parameters(model, plan, model.is_moe()).total();
  }
  // Whether the host waits for how many tokens each expert gets: not where a capacity says it.
  bool host_counts_tokens() const {
    return software.host_microseconds_for_expert_counts > 0 && training.expert_capacity_factor <= 0;
  }
  int64_t embedding_parameters() const { return model.embedding_parameters() / plan.tp; }
  // Of the table of embeddings, which may be whole on every rank; a tied one is split as the head
  // is.
  bool replicates_table() const {
    return software.tp_replicates_table && plan.tp > 1 && !model.tied_embeddings;
  }
  int64_t table_parameters() const {
    return replicates_table() ? model.embedding_parameters() : embedding_parameters();
  }
};

}  // namespace herdsim

#include "tools/study/least_memory.h"

#include <algorithm>

#include "workloads/memory/layer_activations.h"
#include "workloads/stage_layout.h"

namespace herdsim {

int64_t least_layer_parameters(const ModelArchitecture& model, const ParallelPlan& plan) {
  const int64_t layer = layer_parameters(model, plan, model.is_moe()).total();
  return model.is_moe() && model.dense_layers() > 0
             ? std::min(layer, layer_parameters(model, plan, false).total())
             : layer;
}

int64_t most_layers(const ModelArchitecture& model, const ParallelPlan& plan) {
  return (model.layers + plan.pp - 1) / plan.pp;
}

double LeastMemory::kept_a_token(const PlanCandidate& c) {
  const auto [at, is_new] = kept_.try_emplace({c.plan.tp, c.plan.cp, c.recompute}, 0.0);
  if (!is_new) return at->second;
  Training training = base_.training;
  training.recompute = c.recompute;
  const auto kept_by = [&](bool with_experts) {
    return layer_activations(base_.model, c.plan, training, base_.software,
                             {.with_experts = with_experts})
        .kept;
  };
  const bool all_have_experts = base_.model.is_moe() && base_.model.dense_layers() == 0;
  at->second = all_have_experts ? kept_by(true) : std::min(kept_by(true), kept_by(false));
  return at->second;
}

Bytes LeastMemory::of(const PlanCandidate& c) {
  const int64_t layers = most_layers(base_.model, c.plan);
  const auto parameters = static_cast<double>(layers * least_layer_parameters(base_.model, c.plan));
  const int64_t copies = c.schedule->layout == ChunkLayout::kBidirectional ? 2 : 1;
  const auto shards = static_cast<double>(c.plan.dp * c.plan.cp * copies);
  const Sharding shard = c.plan.shard;
  const bool gradients_too = shard == Sharding::kZero2 || shard == Sharding::kZero3;
  const auto gradient =
      static_cast<double>(bytes_per_element(base_.software.gradient_accumulation_type));
  double bytes = shard == Sharding::kZero3 ? 0 : 2 * parameters;
  bytes += gradient * parameters / (gradients_too ? shards : 1);
  bytes +=
      base_.training.optimizer_state_bytes() * parameters / (shard == Sharding::kNone ? 1 : shards);
  const int64_t tokens = c.plan.micro_batch * base_.training.sequence_length / c.plan.cp;
  const double kept = kept_a_token(c) * static_cast<double>(tokens);
  return Bytes(static_cast<int64_t>(bytes + kept * static_cast<double>(layers)));
}

}  // namespace herdsim

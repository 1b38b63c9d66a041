// How a model is spread over ranks, and what a step of training is.
//
// Ranks are numbered in the plan's order of axes; by default as Llama 3 does, [TP, CP, PP, DP] from
// the innermost:
//   rank = ((dp * PP + pp) * CP + cp) * TP + tp
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/ids.h"
#include "sim/models/kernel.h"
#include "sim/opgraph/rank_grid.h"

namespace herdsim {

// What the data-parallel ranks of one stage share instead of replicating.
enum class Sharding : uint8_t {
  kNone,      // plain replicas, all-reduce of gradients
  kZero1,     // optimizer state: reduce-scatter gradients, all-gather parameters after the update
  kZero2,     // and gradients
  kZero3,     // and parameters, gathered again in the backward pass
  kFsdpKeep,  // Llama 3: optimizer and gradients sharded, parameters gathered once a step and kept
};

// How context-parallel ranks see the keys and values of each other.
enum class ContextParallel : uint8_t {
  kAllGather,  // gathered before attention (Llama 3, section 3.3.2)
  kRing,       // passed round a ring while attention works on what is there (Liu et al. 2023,
               // arXiv:2310.01889)
  kAllToAll,   // heads for sequence: each rank has whole sequences of its heads (Ulysses,
               // arXiv:2309.14509)
};

// What the backward pass makes again of a layer. Products are not made again unless said.
enum class Recompute : uint8_t {
  kNone,
  kSelective,         // core attention
  kFull,              // all of it, from the layer's input
  kElementwise,       // norms and the activation function
  kHalfTheProducts,   // norms, rotation, activation and every other product (torchtitan's selective
                      // "op")
  kKeepQkv,           // all but Q, K and V (MaxText save_qkv_proj)
  kKeepQkvAndOutput,  // all but Q, K, V and the output projection
};

// What kSelective makes again, by the names of Megatron-LM's --recompute-modules (transformer_config.py, core 0.12).
enum class RecomputeModule : uint8_t {
  kCoreAttention,    // core_attn
  kNorms,            // layernorm
  kActivation,       // moe_act; here of dense layers, too
  kMlaUpProjection,  // mla_up_proj
  kMlp,              // mlp, of layers without experts
  kSharedExperts,    // shared_experts
  kExperts,          // moe: routed and shared, with their transfers
};

struct ParallelPlan {
  int64_t tp = 1, cp = 1, ep = 1, pp = 1, dp = 1;
  int64_t virtual_stages = 1;  // model chunks a pipeline rank
  bool sequence_parallel = true;
  Sharding shard = Sharding::kZero1;
  int64_t micro_batch = 1;  // sequences
  // Layers of each model chunk in model order, where the scenario says so; empty: spread evenly,
  // see stage_layout.h.
  std::vector<int64_t> layers_per_chunk;
  // Tensor-parallel ranks that share each expert: tp, or 1 where experts are whole and ep counts
  // tensor ranks too. 0: tp.
  int64_t expert_tp = 0;
  // Data-parallel ranks that share out the state; the other replicas hold copies of it (HSDP). 0:
  // all.
  int64_t dp_shard = 0;
  ContextParallel context = ContextParallel::kAllGather;
  std::array<Axis, kAxes> order = GridShape{}.order;  // innermost first

  int64_t ranks() const { return tp * cp * pp * dp; }
  int64_t ranks_per_replica() const { return tp * cp * pp; }
  int64_t expert_ranks() const { return expert_tp > 0 ? expert_tp : tp; }
  bool experts_span_tp() const { return expert_ranks() < tp; }
  // Data-parallel ranks among those that share out the experts, and copies of each expert.
  int64_t expert_dp() const { return experts_span_tp() ? ep / tp : ep; }
  int64_t expert_copies() const { return cp * dp / expert_dp(); }
  bool is_hybrid() const { return dp_shard > 0 && dp_shard < dp; }
  // Ranks that share out the state of what all data-parallel ranks hold.
  int64_t shards() const { return cp * (is_hybrid() ? dp_shard : dp); }

  // `mirrored`: a schedule from both ends of the pipeline, where two stages hold the same chunks.
  RankGrid grid(bool mirrored = false) const {
    return RankGrid({.tp = tp,
                     .cp = cp,
                     .pp = pp,
                     .dp = dp,
                     .inner = is_hybrid() ? dp_shard : expert_dp(),
                     .experts_span_tp = experts_span_tp(),
                     .mirrored = mirrored,
                     .order = order});
  }
};

struct RankCoordinates {
  int64_t tp = 0, cp = 0, pp = 0, dp = 0;
};

inline RankCoordinates coordinates_of(RankId rank, const ParallelPlan& plan) {
  const RankGrid grid = plan.grid();
  const auto at = [&](Axis axis) { return static_cast<int64_t>(grid.coordinate(rank, axis)); };
  return {at(Axis::kTp), at(Axis::kCp), at(Axis::kPp), at(Axis::kDp)};
}

inline RankId rank_at(const RankCoordinates& c, const ParallelPlan& plan) {
  const RankGrid grid = plan.grid();
  RankId rank(0);
  for (const auto& [axis, value] : {std::pair(Axis::kTp, c.tp), std::pair(Axis::kCp, c.cp),
                                    std::pair(Axis::kPp, c.pp), std::pair(Axis::kDp, c.dp)}) {
    rank = grid.with(rank, axis, static_cast<size_t>(value));
  }
  return rank;
}

// Documents packed into sequences, each token attending to its own: a log-normal distribution of
// their tokens.
struct DocumentLengths {
  double mean_tokens = 0;  // 0: one document a sequence
  double sigma = 1;        // of the logarithm
};

// What Adam keeps of a parameter beside its weight and its gradient.
enum class OptimizerState : uint8_t {
  kFp32Moments,  // an fp32 master copy and two fp32 moments: 12 bytes
  kBf16Moments,  // an fp32 master copy and two bf16 moments: 8 bytes (DeepSeek-V3,
                 // arXiv:2412.19437, section 3.3.3)
};

// Where batches come from, for the whole job.
struct DataLoader {
  double tokens_per_second = 0;  // 0: never late
  int64_t prefetch = 2;          // batches it may be ahead; 0: it loads while the GPUs wait
};

struct Training {
  int64_t sequence_length = 0;
  int64_t global_batch = 0;  // sequences a step
  DataType precision = DataType::kBf16;
  Recompute recompute = Recompute::kNone;
  std::vector<RecomputeModule> recompute_modules;  // of kSelective; empty: core attention
  double recompute_fraction = 1.0;  // of the layers, spread evenly; the others keep everything
  int64_t recompute_layers = 0;     // the first of each model chunk instead; 0: by the fraction
  OptimizerState optimizer = OptimizerState::kFp32Moments;
  DataLoader loader;
  std::string schedule = "1f1b";  // a row of workloads/schedules
  int64_t consecutive_micro_batches =
      0;  // of one chunk before the next; 0: as many as pipeline stages
  // Share of the causal triangle that document masks leave, 1 without them.
  double document_mask_fraction = 1.0;
  // Where they are given, document_mask_fraction is their mean; see uneven_load.h.
  DocumentLengths documents;
  uint64_t seed = 1;  // of their draws
  // Tokens of the busiest expert-parallel rank over the mean of its group; 1: routing is balanced.
  double expert_imbalance = 1.0;
  // An expert takes at most this many times the mean and drops the rest; 0: none is dropped.
  double expert_capacity_factor = 0;

  int64_t tokens() const { return sequence_length * global_batch; }
  double optimizer_state_bytes() const {
    return optimizer == OptimizerState::kBf16Moments ? 8 : 12;
  }
  // Requires: kSelective.
  bool selects(RecomputeModule module) const {
    if (recompute_modules.empty()) return module == RecomputeModule::kCoreAttention;
    return std::find(recompute_modules.begin(), recompute_modules.end(), module) !=
           recompute_modules.end();
  }
  // By number from 0, in the model and in its chunk. By the fraction those that recompute lie
  // evenly, where the whole part of layer * fraction steps up.
  bool layer_recomputes(int64_t layer, int64_t in_chunk) const {
    if (recompute != Recompute::kNone && recompute_layers > 0) return in_chunk < recompute_layers;
    const auto whole = [&](int64_t n) {
      return static_cast<int64_t>(static_cast<double>(n) * recompute_fraction + 1e-9);
    };
    return recompute != Recompute::kNone && whole(layer + 1) > whole(layer);
  }
  // Of the busiest rank, after dropping.
  double expert_load() const {
    return expert_capacity_factor > 0 ? std::min(expert_imbalance, expert_capacity_factor)
                                      : expert_imbalance;
  }
};

}  // namespace herdsim

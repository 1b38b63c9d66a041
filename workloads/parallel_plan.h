// How a model is spread over ranks, and what a step of training is.
//
// Ranks are numbered as Llama 3 does, [TP, CP, PP, DP] from the innermost:
//   rank = ((dp * PP + pp) * CP + cp) * TP + tp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/models/kernel.h"

namespace herdsim {

// What the data-parallel ranks of one stage share instead of replicating.
enum class Sharding : uint8_t {
  kNone,      // plain replicas, all-reduce of gradients
  kZero1,     // optimizer state: reduce-scatter gradients, all-gather parameters after the update
  kZero2,     // and gradients
  kZero3,     // and parameters, gathered again in the backward pass
  kFsdpKeep,  // Llama 3: optimizer and gradients sharded, parameters gathered once a step and kept
};

// What the backward pass makes again of a layer. Products are not made again unless said.
enum class Recompute : uint8_t {
  kNone,
  kSelective,         // core attention
  kFull,              // all of it, from the layer's input
  kElementwise,       // norms and the activation function
  kHalfTheProducts,   // norms, rotation, activation and every other product (torchtitan's selective "op")
  kKeepQkv,           // all but Q, K and V (MaxText save_qkv_proj)
  kKeepQkvAndOutput,  // all but Q, K, V and the output projection
};

struct ParallelPlan {
  int64_t tp = 1, cp = 1, ep = 1, pp = 1, dp = 1;
  int64_t virtual_stages = 1;  // model chunks a pipeline rank
  bool sequence_parallel = true;
  Sharding shard = Sharding::kZero1;
  int64_t micro_batch = 1;  // sequences
  // Layers of each model chunk in model order, where the scenario says so; empty: spread evenly, see stage_layout.h.
  std::vector<int64_t> layers_per_chunk;

  int64_t ranks() const { return tp * cp * pp * dp; }
  int64_t ranks_per_replica() const { return tp * cp * pp; }
};

struct RankCoordinates {
  int64_t tp = 0, cp = 0, pp = 0, dp = 0;
};

constexpr RankCoordinates coordinates_of(RankId rank, const ParallelPlan& plan) {
  auto r = static_cast<int64_t>(rank.index());
  RankCoordinates c;
  c.tp = r % plan.tp;
  r /= plan.tp;
  c.cp = r % plan.cp;
  r /= plan.cp;
  c.pp = r % plan.pp;
  c.dp = r / plan.pp;
  return c;
}

constexpr RankId rank_at(const RankCoordinates& c, const ParallelPlan& plan) {
  return RankId(static_cast<size_t>(((c.dp * plan.pp + c.pp) * plan.cp + c.cp) * plan.tp + c.tp));
}

struct Training {
  int64_t sequence_length = 0;
  int64_t global_batch = 0;  // sequences a step
  DataType precision = DataType::kBf16;
  Recompute recompute = Recompute::kNone;
  double recompute_fraction = 1.0;  // of the layers, spread evenly; the others keep everything
  std::string schedule = "1f1b";          // a row of workloads/schedules
  int64_t consecutive_micro_batches = 0;  // of one chunk before the next; 0: as many as pipeline stages
  // Share of the causal triangle that document masks leave, 1 without them.
  double document_mask_fraction = 1.0;

  int64_t tokens() const { return sequence_length * global_batch; }
};

}  // namespace herdsim

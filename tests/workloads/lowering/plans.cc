#include "tests/workloads/lowering/plans.h"

namespace herdsim {
namespace {

constexpr int64_t kMicroBatches = 8;

ModelArchitecture tiny_model() {
  return {.name = "tiny",
          .layers = 1,
          .hidden = 64,
          .ffn = 256,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 16,
          .vocab = 512};
}

struct Grid {
  int64_t tp, cp, pp, dp, virtual_stages;
};
constexpr Grid kGrids[] = {{1, 1, 1, 1, 1}, {2, 1, 2, 2, 2}, {4, 1, 4, 1, 1},
                           {1, 2, 4, 2, 3}, {2, 2, 1, 4, 1}, {1, 1, 8, 3, 1}};

// Four experts, of which a token visits two, shared out as far as the grid allows.
void make_experts(PlanCase& c) {
  c.model.experts = 4;
  c.model.experts_per_token = 2;
  c.plan.ep = c.plan.dp % 2 == 0 ? 2 : 1;
}

// What changes beside schedule and grid.
struct Variant {
  const char* name;
  void (*apply)(PlanCase&);
};
const Variant kVariants[] = {
    {"plain", [](PlanCase&) {}},
    {"replicas", [](PlanCase& c) { c.plan.shard = Sharding::kNone; }},
    {"zero2", [](PlanCase& c) { c.plan.shard = Sharding::kZero2; }},
    {"zero3", [](PlanCase& c) { c.plan.shard = Sharding::kZero3; }},
    {"fsdp keep", [](PlanCase& c) { c.plan.shard = Sharding::kFsdpKeep; }},
    {"zero3, late",
     [](PlanCase& c) {
       c.plan.shard = Sharding::kZero3;
       c.software.dp_overlap = false;
     }},
    {"fsdp keep, late",
     [](PlanCase& c) {
       c.plan.shard = Sharding::kFsdpKeep;
       c.software.dp_overlap = false;
     }},
    {"whole sequence", [](PlanCase& c) { c.plan.sequence_parallel = false; }},
    {"chunked", [](PlanCase& c) { c.software.tp_overlap = TpOverlap::kChunked; }},
    {"inputs kept", [](PlanCase& c) { c.software.tp_regather_in_backward = false; }},
    {"backward exposed", [](PlanCase& c) { c.software.tp_backward_overlap = false; }},
    {"selective", [](PlanCase& c) { c.training.recompute = Recompute::kSelective; }},
    {"full", [](PlanCase& c) { c.training.recompute = Recompute::kFull; }},
    {"full, chunked",
     [](PlanCase& c) {
       c.training.recompute = Recompute::kFull;
       c.software.tp_overlap = TpOverlap::kChunked;
     }},
    {"fp8", [](PlanCase& c) { c.training.precision = DataType::kFp8; }},
    {"plain feed-forward", [](PlanCase& c) { c.model.gated_mlp = false; }},
    {"two sequences",
     [](PlanCase& c) {
       c.plan.micro_batch = 2;
       c.training.global_batch *= 2;
     }},
    {"two layers a chunk", [](PlanCase& c) { c.model.layers *= 2; }},
    {"tied", [](PlanCase& c) { c.model.tied_embeddings = true; }},
    {"latent attention",
     [](PlanCase& c) {
       c.model.kv_heads = c.model.heads;
       c.model.kv_lora_rank = 32;
       c.model.q_lora_rank = 48;
       c.model.rope_head_dim = 8;
       c.model.value_head_dim = 24;
     }},
    {"experts", [](PlanCase& c) { make_experts(c); }},
    {"experts, full",
     [](PlanCase& c) {
       make_experts(c);
       c.training.recompute = Recompute::kFull;
     }},
    {"experts, first layer dense, shared",
     [](PlanCase& c) {
       make_experts(c);
       c.model.shared_experts = 2;
       c.model.expert_ffn = 64;
       c.model.first_dense_layers = c.model.layers > 1 ? 1 : 0;
       c.software.shared_expert_overlap = true;
     }},
    {"experts, pairs of passes",
     [](PlanCase& c) {
       make_experts(c);
       c.software.pass_overlap = true;
     }},
    {"experts, counted by the host",
     [](PlanCase& c) {
       make_experts(c);
       c.software.host_microseconds_for_expert_counts = 100;
       c.software.host_microseconds_per_expert_layer = 1000;
       c.software.expert_dispatch_once = true;
     }},
    {"experts, with a capacity",
     [](PlanCase& c) {
       make_experts(c);
       c.software.host_microseconds_for_expert_counts = 100;
       c.software.host_microseconds_per_expert_layer = 1000;
       c.training.expert_capacity_factor = 1;
     }},
    {"experts, counted by the host, pairs of passes, full",
     [](PlanCase& c) {
       make_experts(c);
       c.software.host_microseconds_for_expert_counts = 100;
       c.software.host_microseconds_per_expert_layer = 1000;
       c.software.pass_overlap = true;
       c.training.recompute = Recompute::kFull;
     }},
    {"experts with clamps and biases",
     [](PlanCase& c) {
       make_experts(c);
       c.model.clamped_activation = c.model.expert_biases = true;
       c.software.clamp_forward_ffn_bytes = c.software.clamp_backward_ffn_bytes = 16;
       c.software.expert_bias_forward_bytes = c.software.expert_bias_backward_bytes = 28;
     }},
    {"head late", [](PlanCase& c) { c.software.head_weight_gradients_deferred = 3; }},
    {"all of the head late, buckets, replicas",
     [](PlanCase& c) {
       c.model.layers *= 2;
       c.plan.shard = Sharding::kNone;
       c.software.head_weight_gradients_deferred = 100;
       c.software.dp_bucket_parameters = 80e3;
     }},
    {"head late, pairs of passes, reductions late",
     [](PlanCase& c) {
       c.software.head_weight_gradients_deferred = 5;
       c.software.pass_overlap = true;
       c.software.dp_overlap = false;
     }},
    {"every second layer in a window", [](PlanCase& c) { c.model.alternate_window = 32; }},
    {"parameters gathered in fp8",
     [](PlanCase& c) {
       c.training.precision = DataType::kFp8;
       c.software.parameter_gather_fp8 = true;
     }},
    {"buckets",
     [](PlanCase& c) {
       c.model.layers *= 2;
       c.software.dp_bucket_parameters = 80e3;
     }},
    {"buckets of experts, late",
     [](PlanCase& c) {
       make_experts(c);
       c.model.layers *= 2;
       c.software.dp_bucket_parameters_per_rank = 100e3;
       c.software.dp_overlap = false;
     }},
    {"a bucket a chunk but the first, replicas",
     [](PlanCase& c) {
       c.model.layers *= 2;
       c.plan.shard = Sharding::kNone;
       c.software.dp_bucket_parameters = 10e3;
       c.software.dp_bucket_whole_chunks = true;
     }},
    {"pairs of passes", [](PlanCase& c) { c.software.pass_overlap = true; }},
    {"ring", [](PlanCase& c) { c.plan.context = ContextParallel::kRing; }},
    {"exchange of heads", [](PlanCase& c) { c.plan.context = ContextParallel::kAllToAll; }},
    {"replicas of shards",
     [](PlanCase& c) {
       c.plan.shard = Sharding::kZero3;
       c.plan.dp_shard = c.plan.dp % 2 == 0 ? 2 : 0;
     }},
    {"pipeline outermost",
     [](PlanCase& c) {
       c.plan.order = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
     }},
    {"first layer of a chunk recomputed",
     [](PlanCase& c) {
       c.training.recompute = Recompute::kFull;
       c.training.recompute_layers = 1;
     }},
    {"all layers on the last chunk, zero3",
     [](PlanCase& c) {
       c.plan.layers_per_chunk.assign(static_cast<size_t>(c.model.layers), 0);
       c.plan.layers_per_chunk.back() = c.model.layers;
       c.plan.shard = Sharding::kZero3;
     }},
    {"ends alone", [](PlanCase& c) { c.model.layers -= c.model.layers > 2 ? 2 : 0; }},
};

std::vector<PlanCase> all_cases() {
  std::vector<PlanCase> cases;
  for (const ScheduleRow& row : schedules()) {
    for (const Grid& grid : kGrids) {
      for (const Variant& variant : kVariants) {
        PlanCase c;
        c.model = tiny_model();
        c.plan.tp = grid.tp;
        c.plan.cp = grid.cp;
        c.plan.pp = grid.pp;
        c.plan.dp = grid.dp;
        c.plan.virtual_stages = row.uses_virtual_stages ? grid.virtual_stages : 1;
        c.training.sequence_length = 128;
        c.training.global_batch = grid.dp * kMicroBatches;
        c.training.schedule = row.name;
        Faults faults;
        row.validate(c.shape(), faults);
        if (!faults.empty()) continue;
        c.model.layers = model_chunks(row, c.shape());
        variant.apply(c);
        c.name = std::string(row.name) + ", tp " + std::to_string(grid.tp) + " cp " +
                 std::to_string(grid.cp) + " pp " + std::to_string(grid.pp) + " dp " +
                 std::to_string(grid.dp) + ", " + variant.name;
        cases.push_back(std::move(c));
      }
    }
  }
  return cases;
}

}  // namespace

const std::vector<PlanCase>& plan_cases() {
  static const std::vector<PlanCase> kCases = all_cases();
  return kCases;
}

}  // namespace herdsim

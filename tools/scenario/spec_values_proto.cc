#include <algorithm>

#include "tools/scenario/cluster_values.h"
#include "tools/scenario/enum_cast.h"
#include "tools/scenario/scenario.pb.h"
#include "tools/scenario/spec_values.h"
#include "tools/scenario/weeks_values.h"

namespace herdsim {
namespace {

static_assert(static_cast<int>(DataType::kFp32) == spec::FP32);
static_assert(static_cast<int>(StreamClass::kOptimizer) == spec::OPTIMIZER);
static_assert(static_cast<int>(TpOverlap::kChunked) == spec::Software::CHUNKED);
static_assert(static_cast<int>(Sharding::kFsdpKeep) == spec::Parallel::FSDP_KEEP);
static_assert(static_cast<int>(Recompute::kKeepQkvAndOutput) ==
              spec::Training::KEEP_QKV_AND_OUTPUT);
static_assert(static_cast<int>(RecomputeModule::kExperts) == spec::Training::EXPERTS);
static_assert(static_cast<int>(ContextParallel::kAllToAll) == spec::Parallel::ALL_TO_ALL);
static_assert(static_cast<int>(OptimizerState::kBf16Moments) == spec::Training::ADAM_BF16_MOMENTS);
static_assert(static_cast<int>(Axis::kDp) == spec::Parallel::DP);

ElementwiseTraffic traffic_from_message(const spec::Traffic& m) {
  return {.hidden_bytes = m.hidden_bytes(),
          .ffn_bytes = m.ffn_bytes(),
          .stream = enum_cast<StreamClass>(m.stream())};
}

void to_message(const ElementwiseTraffic& t, spec::Traffic* m) {
  m->set_hidden_bytes(t.hidden_bytes);
  m->set_ffn_bytes(t.ffn_bytes);
  m->set_stream(enum_cast<spec::StreamClass>(t.stream));
}

void to_message(const SoftwareStack& s, spec::Software* m) {
  m->set_attention_kernel(s.attention_kernel);
  to_message(s.forward, m->mutable_forward());
  to_message(s.backward, m->mutable_backward());
  m->set_logit_bytes(s.logit_bytes);
  m->set_logit_stream(enum_cast<spec::StreamClass>(s.logit_stream));
  m->set_gradient_accumulation_bytes(s.gradient_accumulation_bytes);
  m->set_gradient_accumulation_type(enum_cast<spec::DataType>(s.gradient_accumulation_type));
  m->set_gradient_reduce_type(enum_cast<spec::DataType>(s.gradient_reduce_type));
  m->set_parameter_gather_type(enum_cast<spec::DataType>(s.parameter_gather_type));
  m->set_optimizer_bytes(s.optimizer_bytes);
  m->set_tp_overlap(enum_cast<spec::Software::TpOverlap>(s.tp_overlap));
  m->set_tp_overlap_chunks(s.tp_overlap_chunks);
  m->set_tp_regather_in_backward(s.tp_regather_in_backward);
  m->set_tp_backward_overlap(s.tp_backward_overlap);
  m->set_tp_own_tokens_first(s.tp_own_tokens_first);
  m->set_loss_reductions(s.loss_reductions);
  m->set_norm_reductions_per_layer(s.norm_reductions_per_layer);
  m->set_host_microseconds_per_message(s.host_microseconds_per_message);
  m->set_tp_fp8_transfers(s.tp_fp8_transfers);
  m->set_tp_fp8_gathers(s.tp_fp8_gathers);
  m->set_tp_gathers_apart(s.tp_gathers_apart);
  m->set_tp_reduces_apart(s.tp_reduces_apart);
  m->set_tp_replicates_table(s.tp_replicates_table);
  m->set_tp_gathers_logits(s.tp_gathers_logits);
  m->set_head_weight_gradients_deferred(s.head_weight_gradients_deferred);
  m->set_p2p_async(s.p2p_async);
  m->set_p2p_scatter_gather(s.p2p_scatter_gather);
  m->set_dp_reduces_once(s.dp_reduces_once);
  m->set_dp_overlap(s.dp_overlap);
  m->set_activation_hidden_bytes(s.activation_hidden_bytes);
  m->set_activation_ffn_bytes(s.activation_ffn_bytes);
  m->set_host_microseconds_per_layer_forward(s.host_microseconds_per_layer_forward);
  m->set_host_microseconds_per_layer_backward(s.host_microseconds_per_layer_backward);
  m->set_launch_blocking(s.launch_blocking);
  m->set_host_milliseconds_per_step(s.host_milliseconds_per_step);
  m->set_host_stall_probability(s.host_stalls.probability);
  m->set_host_stall_microseconds(s.host_stalls.microseconds);
  m->set_gpu_speed_sigma(s.gpu_speed_sigma);
  m->set_clock_factor(s.clock_factor);
  m->set_gradient_stream(enum_cast<spec::StreamClass>(s.gradient_stream));
  m->set_tp_copy_bytes(s.tp_copy_bytes);
  m->set_unpad_hidden_bytes(s.unpad_hidden_bytes);
  m->set_recompute_stops_early(s.recompute_stops_early);
  m->set_ring_merge_bytes(s.ring_merge_bytes);
  m->set_ring_gradient_bytes(s.ring_gradient_bytes);
  m->set_ring_repeats_kv(s.ring_repeats_kv);
  m->set_fp8_cast_share(s.fp8_cast_share);
  m->set_fp8_input_cast_bytes(s.fp8_input_cast_bytes);
  m->set_fp8_input_turn_bytes(s.fp8_input_turn_bytes);
  m->set_fp8_gradient_cast_bytes(s.fp8_gradient_cast_bytes);
  m->set_fp8_gradient_turn_bytes(s.fp8_gradient_turn_bytes);
  m->set_fp8_weight_cast_bytes(s.fp8_weight_cast_bytes);
  m->set_fp8_weight_turn_bytes(s.fp8_weight_turn_bytes);
  m->set_fp8_product_slowdown(s.fp8_product_slowdown);
  m->set_host_microseconds_per_transfer(s.host_microseconds_per_transfer);
  m->set_host_microseconds_per_head(s.host_microseconds_per_head);
  m->set_host_microseconds_per_sharded_layer(s.host_microseconds_per_sharded_layer);
  m->set_host_microseconds_per_layer_optimizer(s.host_microseconds_per_layer_optimizer);
  m->set_dp_gather_overlap(s.dp_gather_overlap);
  m->set_step_jitter_milliseconds(s.step_jitter_milliseconds);
  m->set_measures_lists(s.measures_lists);
  m->set_sequence_parallel(s.sequence_parallel);
  m->set_parameter_gather_fp8(s.parameter_gather_fp8);
  m->set_dp_bucket_parameters(s.dp_bucket_parameters);
  m->set_dp_bucket_parameters_per_rank(s.dp_bucket_parameters_per_rank);
  m->set_dp_bucket_whole_chunks(s.dp_bucket_whole_chunks);
  m->set_grouped_gemm(s.grouped_gemm);
  m->set_shared_expert_overlap(s.shared_expert_overlap);
  m->set_pass_overlap(s.pass_overlap);
  m->set_fp8_keeps_inputs(s.fp8_keeps_inputs);
  m->set_fp8_keeps_activation_inputs(s.fp8_keeps_activation_inputs);
  m->set_fp8_attention_output_bytes(s.fp8_attention_output_bytes);
  m->set_keeps_expert_results(s.keeps_expert_results);
  m->set_gradient_copy_bytes(s.gradient_copy_bytes);
  m->set_gradient_bucket_bytes(s.gradient_bucket_bytes);
  m->set_parameter_gather_flat(s.parameter_gather_flat);
  m->set_transfer_tensors_in_flight(s.transfer_tensors_in_flight);
  m->set_expert_dispatch_type(enum_cast<spec::DataType>(s.expert_dispatch_type));
  m->set_expert_dispatch_once(s.expert_dispatch_once);
  m->set_expert_kernels_forward(s.expert_kernels_forward);
  m->set_expert_kernels_backward(s.expert_kernels_backward);
  m->set_expert_fp8_kernels(s.expert_fp8_kernels);
  m->set_clamp_forward_ffn_bytes(s.clamp_forward_ffn_bytes);
  m->set_clamp_backward_ffn_bytes(s.clamp_backward_ffn_bytes);
  m->set_expert_bias_forward_bytes(s.expert_bias_forward_bytes);
  m->set_expert_bias_backward_bytes(s.expert_bias_backward_bytes);
  m->set_host_microseconds_per_expert_layer(s.host_microseconds_per_expert_layer);
  m->set_host_microseconds_for_expert_counts(s.host_microseconds_for_expert_counts);
}

void to_message(const ParallelPlan& p, spec::Parallel* m) {
  m->set_tp(p.tp);
  m->set_cp(p.cp);
  m->set_ep(p.ep);
  m->set_pp(p.pp);
  m->set_virtual_stages(p.virtual_stages);
  m->set_shard(enum_cast<spec::Parallel::Shard>(p.shard));
  m->set_micro_batch(p.micro_batch);
  m->set_expert_tp(p.expert_tp);
  m->set_dp_shard(p.dp_shard);
  m->set_context(enum_cast<spec::Parallel::Context>(p.context));
}

void to_message(const Training& t, spec::Training* m) {
  m->set_precision(enum_cast<spec::DataType>(t.precision));
  m->set_recompute(enum_cast<spec::Training::Recompute>(t.recompute));
  m->set_schedule(t.schedule);
  m->set_consecutive_micro_batches(t.consecutive_micro_batches);
  m->set_document_mask_fraction(t.document_mask_fraction);
  m->set_recompute_fraction(t.recompute_fraction);
  m->set_expert_imbalance(t.expert_imbalance);
  m->set_expert_capacity_factor(t.expert_capacity_factor);
  m->set_recompute_layers(t.recompute_layers);
  m->set_optimizer(enum_cast<spec::Training::Optimizer>(t.optimizer));
  m->mutable_loader()->set_tokens_per_second(t.loader.tokens_per_second);
  m->mutable_loader()->set_prefetch(t.loader.prefetch);
  m->mutable_documents()->set_mean_tokens(t.documents.mean_tokens);
  m->mutable_documents()->set_sigma(t.documents.sigma);
}

// The default where the message does not name every axis once, which check_relations() reports.
std::array<Axis, kAxes> order_from_message(const spec::Parallel& m) {
  std::array<Axis, kAxes> order{};
  std::array<bool, kAxes> seen{};
  if (m.order_size() != static_cast<int>(kAxes)) return ParallelPlan{}.order;
  for (int i = 0; i < m.order_size(); ++i) {
    order[static_cast<size_t>(i)] = enum_cast<Axis>(m.order(i));
    seen[static_cast<size_t>(m.order(i))] = true;
  }
  const bool each = std::all_of(seen.begin(), seen.end(), [](bool s) { return s; });
  return each ? order : ParallelPlan{}.order;
}

ParallelPlan plan_from_message(const spec::Parallel& m) {
  return {.tp = m.tp(),
          .cp = m.cp(),
          .ep = m.ep(),
          .pp = m.pp(),
          .dp = m.dp(),
          .virtual_stages = m.virtual_stages(),
          .sequence_parallel = m.sequence_parallel(),
          .shard = enum_cast<Sharding>(m.shard()),
          .micro_batch = m.micro_batch(),
          .layers_per_chunk = {m.layers_per_chunk().begin(), m.layers_per_chunk().end()},
          .expert_tp = m.expert_tp(),
          .dp_shard = m.dp_shard(),
          .context = enum_cast<ContextParallel>(m.context()),
          .order = order_from_message(m)};
}

std::vector<RecomputeModule> modules_from_message(const spec::Training& m) {
  std::vector<RecomputeModule> modules;
  for (const int module : m.recompute_modules()) {
    modules.push_back(enum_cast<RecomputeModule>(module));
  }
  return modules;
}

Training training_from_message(const spec::Training& m) {
  return {.sequence_length = m.sequence_length(),
          .global_batch = m.global_batch(),
          .precision = enum_cast<DataType>(m.precision()),
          .recompute = enum_cast<Recompute>(m.recompute()),
          .recompute_modules = modules_from_message(m),
          .recompute_fraction = m.recompute_fraction(),
          .recompute_layers = m.recompute_layers(),
          .optimizer = enum_cast<OptimizerState>(m.optimizer()),
          .loader = {.tokens_per_second = m.loader().tokens_per_second(),
                     .prefetch = m.loader().prefetch()},
          .schedule = m.schedule(),
          .consecutive_micro_batches = m.consecutive_micro_batches(),
          .document_mask_fraction = m.document_mask_fraction(),
          .documents = {.mean_tokens = m.documents().mean_tokens(),
                        .sigma = m.documents().sigma()},
          .expert_imbalance = m.expert_imbalance(),
          .expert_capacity_factor = m.expert_capacity_factor()};
}

}  // namespace

void default_spec(spec::Scenario* message) {
  const Scenario defaults;
  spec::Model* model = message->mutable_model();
  model->set_gated_mlp(defaults.model.gated_mlp);
  model->set_tied_embeddings(defaults.model.tied_embeddings);
  model->set_experts(defaults.model.experts);
  model->set_experts_per_token(defaults.model.experts_per_token);
  model->set_shared_experts(defaults.model.shared_experts);
  model->set_expert_ffn(defaults.model.expert_ffn);
  model->set_first_dense_layers(defaults.model.first_dense_layers);
  model->set_expert_groups(defaults.model.expert_groups);
  model->set_expert_groups_per_token(defaults.model.expert_groups_per_token);
  model->set_expert_biases(defaults.model.expert_biases);
  model->set_clamped_activation(defaults.model.clamped_activation);
  model->set_alternate_window(defaults.model.alternate_window);
  model->set_kv_lora_rank(defaults.model.kv_lora_rank);
  model->set_q_lora_rank(defaults.model.q_lora_rank);
  model->set_rope_head_dim(defaults.model.rope_head_dim);
  model->set_value_head_dim(defaults.model.value_head_dim);
  to_message(defaults.cluster, message->mutable_cluster());
  to_message(defaults.software, message->mutable_software());
  to_message(defaults.plan, message->mutable_parallel());
  to_message(defaults.training, message->mutable_training());
  message->mutable_profile();
  to_message(defaults.reliability, message->mutable_reliability());
  to_message(defaults.checkpoint, message->mutable_checkpoint());
  to_message(defaults.recovery, message->mutable_recovery());
  spec::OtherTraffic* traffic = message->mutable_other_traffic();
  traffic->set_tor_uplinks(defaults.other_traffic.tor_uplinks);
  traffic->set_pod_uplinks(defaults.other_traffic.pod_uplinks);
  traffic->set_saving(defaults.other_traffic.saving);
  traffic->set_save_begins_s(defaults.other_traffic.save_begins.seconds());
  traffic->set_save_left(defaults.other_traffic.save_left);
  traffic->set_loading(defaults.other_traffic.loading);
  message->mutable_run()->set_days(defaults.run.days);
  message->mutable_run()->set_tokens(defaults.run.tokens);
  message->mutable_run()->set_replicas(defaults.run.replicas);
  message->set_seed(defaults.seed);
}

ModelArchitecture model_from_message(const spec::Model& m) {
  return {.name = m.name(),
          .layers = m.layers(),
          .hidden = m.hidden(),
          .ffn = m.ffn(),
          .heads = m.heads(),
          .kv_heads = m.kv_heads(),
          .head_dim = m.head_dim(),
          .vocab = m.vocab(),
          .gated_mlp = m.gated_mlp(),
          .tied_embeddings = m.tied_embeddings(),
          .experts = m.experts(),
          .experts_per_token = m.experts_per_token(),
          .shared_experts = m.shared_experts(),
          .expert_ffn = m.expert_ffn(),
          .first_dense_layers = m.first_dense_layers(),
          .expert_groups = m.expert_groups(),
          .expert_groups_per_token = m.expert_groups_per_token(),
          .expert_biases = m.expert_biases(),
          .clamped_activation = m.clamped_activation(),
          .alternate_window = m.alternate_window(),
          .kv_lora_rank = m.kv_lora_rank(),
          .q_lora_rank = m.q_lora_rank(),
          .rope_head_dim = m.rope_head_dim(),
          .value_head_dim = m.value_head_dim()};
}

SoftwareStack software_from_message(const spec::Software& m) {
  return {.name = m.name(),
          .attention_kernel = m.attention_kernel(),
          .forward = traffic_from_message(m.forward()),
          .backward = traffic_from_message(m.backward()),
          .logit_bytes = m.logit_bytes(),
          .logit_stream = enum_cast<StreamClass>(m.logit_stream()),
          .gradient_accumulation_bytes = m.gradient_accumulation_bytes(),
          .gradient_stream = enum_cast<StreamClass>(m.gradient_stream()),
          .gradient_accumulation_type = enum_cast<DataType>(m.gradient_accumulation_type()),
          .gradient_reduce_type = enum_cast<DataType>(m.gradient_reduce_type()),
          .parameter_gather_type = enum_cast<DataType>(m.parameter_gather_type()),
          .parameter_gather_fp8 = m.parameter_gather_fp8(),
          .optimizer_bytes = m.optimizer_bytes(),
          .tp_overlap = enum_cast<TpOverlap>(m.tp_overlap()),
          .tp_overlap_chunks = m.tp_overlap_chunks(),
          .tp_regather_in_backward = m.tp_regather_in_backward(),
          .tp_backward_overlap = m.tp_backward_overlap(),
          .tp_own_tokens_first = m.tp_own_tokens_first(),
          .loss_reductions = m.loss_reductions(),
          .norm_reductions_per_layer = m.norm_reductions_per_layer(),
          .tp_fp8_transfers = m.tp_fp8_transfers(),
          .tp_fp8_gathers = m.tp_fp8_gathers(),
          .tp_gathers_apart = m.tp_gathers_apart(),
          .tp_reduces_apart = m.tp_reduces_apart(),
          .tp_replicates_table = m.tp_replicates_table(),
          .tp_gathers_logits = m.tp_gathers_logits(),
          .head_weight_gradients_deferred = m.head_weight_gradients_deferred(),
          .p2p_async = m.p2p_async(),
          .p2p_scatter_gather = m.p2p_scatter_gather(),
          .dp_reduces_once = m.dp_reduces_once(),
          .dp_overlap = m.dp_overlap(),
          .dp_gather_overlap = m.dp_gather_overlap(),
          .dp_bucket_parameters = m.dp_bucket_parameters(),
          .dp_bucket_parameters_per_rank = m.dp_bucket_parameters_per_rank(),
          .dp_bucket_whole_chunks = m.dp_bucket_whole_chunks(),
          .grouped_gemm = m.grouped_gemm(),
          .shared_expert_overlap = m.shared_expert_overlap(),
          .pass_overlap = m.pass_overlap(),
          .expert_dispatch_type = enum_cast<DataType>(m.expert_dispatch_type()),
          .expert_dispatch_once = m.expert_dispatch_once(),
          .expert_kernels_forward = m.expert_kernels_forward(),
          .expert_kernels_backward = m.expert_kernels_backward(),
          .expert_fp8_kernels = m.expert_fp8_kernels(),
          .clamp_forward_ffn_bytes = m.clamp_forward_ffn_bytes(),
          .clamp_backward_ffn_bytes = m.clamp_backward_ffn_bytes(),
          .expert_bias_forward_bytes = m.expert_bias_forward_bytes(),
          .expert_bias_backward_bytes = m.expert_bias_backward_bytes(),
          .activation_hidden_bytes = m.activation_hidden_bytes(),
          .activation_ffn_bytes = m.activation_ffn_bytes(),
          .fp8_keeps_inputs = m.fp8_keeps_inputs(),
          .fp8_keeps_activation_inputs = m.fp8_keeps_activation_inputs(),
          .fp8_attention_output_bytes = m.fp8_attention_output_bytes(),
          .keeps_expert_results = m.keeps_expert_results(),
          .gradient_copy_bytes = m.gradient_copy_bytes(),
          .gradient_bucket_bytes = m.gradient_bucket_bytes(),
          .parameter_gather_flat = m.parameter_gather_flat(),
          .transfer_tensors_in_flight = m.transfer_tensors_in_flight(),
          .ring_merge_bytes = m.ring_merge_bytes(),
          .ring_gradient_bytes = m.ring_gradient_bytes(),
          .ring_repeats_kv = m.ring_repeats_kv(),
          .tp_copy_bytes = m.tp_copy_bytes(),
          .unpad_hidden_bytes = m.unpad_hidden_bytes(),
          .recompute_stops_early = m.recompute_stops_early(),
          .fp8_cast_share = m.fp8_cast_share(),
          .fp8_input_cast_bytes = m.fp8_input_cast_bytes(),
          .fp8_input_turn_bytes = m.fp8_input_turn_bytes(),
          .fp8_gradient_cast_bytes = m.fp8_gradient_cast_bytes(),
          .fp8_gradient_turn_bytes = m.fp8_gradient_turn_bytes(),
          .fp8_weight_cast_bytes = m.fp8_weight_cast_bytes(),
          .fp8_weight_turn_bytes = m.fp8_weight_turn_bytes(),
          .fp8_product_slowdown = m.fp8_product_slowdown(),
          .host_microseconds_per_layer_forward = m.host_microseconds_per_layer_forward(),
          .host_microseconds_per_layer_backward = m.host_microseconds_per_layer_backward(),
          .launch_blocking = m.launch_blocking(),
          .host_microseconds_per_transfer = m.host_microseconds_per_transfer(),
          .host_microseconds_per_head = m.host_microseconds_per_head(),
          .host_microseconds_per_message = m.host_microseconds_per_message(),
          .host_microseconds_per_sharded_layer = m.host_microseconds_per_sharded_layer(),
          .host_microseconds_per_expert_layer = m.host_microseconds_per_expert_layer(),
          .host_microseconds_for_expert_counts = m.host_microseconds_for_expert_counts(),
          .host_microseconds_per_layer_optimizer = m.host_microseconds_per_layer_optimizer(),
          .host_milliseconds_per_step = m.host_milliseconds_per_step(),
          .host_stalls = {.probability = m.host_stall_probability(),
                          .microseconds = m.host_stall_microseconds()},
          .step_jitter_milliseconds = m.step_jitter_milliseconds(),
          .measures_lists = m.measures_lists(),
          .sequence_parallel = m.sequence_parallel(),
          .gpu_speed_sigma = m.gpu_speed_sigma(),
          .clock_factor = m.clock_factor()};
}

Scenario scenario_from_message(const spec::Scenario& m) {
  Scenario scenario;
  scenario.name = m.name();
  scenario.model = model_from_message(m.model());
  scenario.cluster = cluster_from_message(m.cluster());
  scenario.software = software_from_message(m.software());
  scenario.gpus = m.gpus();
  scenario.plan = plan_from_message(m.parallel());
  scenario.training = training_from_message(m.training());
  scenario.reliability = reliability_from_message(m.reliability());
  scenario.checkpoint = checkpoint_from_message(m.checkpoint());
  scenario.recovery = recovery_from_message(m.recovery());
  scenario.run = {
      .days = m.run().days(), .tokens = m.run().tokens(), .replicas = m.run().replicas()};
  scenario.other_traffic = {.tor_uplinks = m.other_traffic().tor_uplinks(),
                            .pod_uplinks = m.other_traffic().pod_uplinks(),
                            .saving = m.other_traffic().saving(),
                            .save_begins = seconds_rounded_up(m.other_traffic().save_begins_s()),
                            .save_left = m.other_traffic().save_left(),
                            .loading = m.other_traffic().loading()};
  scenario.seed = m.seed();
  scenario.training.seed = m.seed();
  if (m.has_published()) {
    scenario.published =
        PublishedResult{.model_tflops_per_gpu = m.published().model_tflops_per_gpu(),
                        .mfu = m.published().mfu(),
                        .source = m.published().source()};
  }
  return scenario;
}

}  // namespace herdsim

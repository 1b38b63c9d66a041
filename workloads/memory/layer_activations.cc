#include "workloads/memory/layer_activations.h"

#include <algorithm>

#include "workloads/layer_parameters.h"

namespace herdsim {
namespace {

constexpr double kFp8 = 1, kBf16 = 2, kFp32 = 4;

// A stack counts its feed-forward bytes for a gated MLP: gate, up and product; without the gate a
// third is not there.
double gate_share(const ModelArchitecture& model) { return model.gated_mlp ? 1.0 : 2.0 / 3.0; }

// Channels a token has of each kind; `load` scales those of routed experts.
struct Widths {
  Widths(const ModelArchitecture& model, bool with_experts, double load = 1)
      : hidden(static_cast<double>(model.hidden)),
        latent(model.is_latent() ? static_cast<double>(model.latent_width()) : 0),
        query(static_cast<double>(model.query_width())),
        keys_values(static_cast<double>(model.is_latent()
                                            ? model.query_width() + model.attention_width()
                                            : 2 * model.kv_width())),
        output(static_cast<double>(model.attention_width())),
        heads(static_cast<double>(model.heads)) {
    if (!with_experts) {
      ffn = static_cast<double>(model.ffn);
      return;
    }
    const double routed = static_cast<double>(model.experts_per_token) * load;
    ffn = (routed + static_cast<double>(model.shared_experts)) *
          static_cast<double>(model.expert_width());
    shared_ffn = static_cast<double>(model.shared_experts * model.expert_width());
    sent = routed * static_cast<double>(model.hidden);
    scores = static_cast<double>(model.experts);
  }
  double hidden, latent, query, keys_values, output, heads;
  double ffn = 0, shared_ffn = 0;  // of all experts that the token visits, and of the shared ones
  double sent = 0;                 // copies of the token at the experts; they send back as much
  double scores = 0;               // of the router
};

// What of a layer is made again in the backward pass, and so not kept.
struct Remade {
  bool norms = false, core_attention = false, queries_keys_values = false, output = false;
  bool second_stream = false;  // the residual stream between the blocks
  bool product = false, up = false, half_of_up = false, shared_up = false, transfers = false;
};

Remade remade(const Training& training, bool with_experts) {
  switch (training.recompute) {
    case Recompute::kNone:
      return {};
    case Recompute::kSelective: {
      const auto selects = [&](RecomputeModule module) { return training.selects(module); };
      const bool whole = selects(with_experts ? RecomputeModule::kExperts : RecomputeModule::kMlp);
      const bool shared = with_experts && selects(RecomputeModule::kSharedExperts);
      return {.norms = selects(RecomputeModule::kNorms),
              .core_attention = selects(RecomputeModule::kCoreAttention),
              .queries_keys_values = selects(RecomputeModule::kMlaUpProjection),
              .product = whole || selects(RecomputeModule::kActivation),
              .up = whole,
              .shared_up = shared,
              .transfers = whole && with_experts};
    }
    case Recompute::kElementwise:
      return {.norms = true, .product = true};
    case Recompute::kHalfTheProducts:
      return {.norms = true, .product = true, .half_of_up = true};
    case Recompute::kKeepQkv:
      return {.norms = true,
              .core_attention = true,
              .output = true,
              .second_stream = true,
              .product = true,
              .up = true,
              .transfers = true};
    case Recompute::kKeepQkvAndOutput:
      return {.norms = true,
              .core_attention = true,
              .output = true,
              .product = true,
              .up = true,
              .transfers = true};
    case Recompute::kFull:
      return {.norms = true,
              .core_attention = true,
              .queries_keys_values = true,
              .output = true,
              .second_stream = true,
              .product = true,
              .up = true,
              .transfers = true};
  }
  return {};
}

}  // namespace

std::vector<ActivationTensor> activation_tensors(const ModelArchitecture& model,
                                                 bool with_experts) {
  const Widths w(model, with_experts);
  std::vector<ActivationTensor> tensors = {
      {"residual stream into norm 1", kBf16 * w.hidden, true},
      {"norm 1 output", kBf16 * w.hidden, true},
      {"Q", kBf16 * w.query},
      {"K, V", kBf16 * w.keys_values},
      {"attention output", kBf16 * w.output},
      {"log-sum-exp", kFp32 * w.heads},
      {"residual stream into norm 2", kBf16 * w.hidden, true},
      {"norm 2 output", kBf16 * w.hidden, true},
      {model.gated_mlp ? "gate, up" : "up", (model.gated_mlp ? 2 : 1) * kBf16 * w.ffn},
      {"product", kBf16 * w.ffn},
  };
  if (model.is_latent()) tensors.push_back({"latents", kBf16 * w.latent, true});
  if (with_experts) {
    tensors.push_back({"tokens at experts", kBf16 * w.sent});
    tensors.push_back({"results of experts", kBf16 * w.sent});
    tensors.push_back({"scores of the router", kFp32 * w.scores, true});
  }
  return tensors;
}

LayerActivations layer_activations(const ModelArchitecture& model, const ParallelPlan& plan,
                                   const Training& training, const SoftwareStack& software,
                                   const LayerForm& form) {
  const bool with_experts = form.with_experts && model.is_moe();
  Widths w(model, with_experts, with_experts ? std::max(1.0, training.expert_load()) : 1);
  // A rank has a whole key head at least.
  if (!model.is_latent()) {
    w.keys_values =
        static_cast<double>(2 * kv_heads_on_rank(model, plan.tp) * model.head_dim * plan.tp);
  }
  const auto tp = static_cast<double>(plan.tp);
  const bool splits_sequence = plan.sequence_parallel && plan.tp > 1;
  const double stream_share = splits_sequence || plan.tp == 1 ? 1 / tp : 1.0;

  double full = 0;
  for (const ActivationTensor& tensor : activation_tensors(model, with_experts)) {
    full += tensor.bytes * (tensor.whole_without_sequence_parallel ? stream_share : 1 / tp);
  }
  if (!model.is_latent()) {
    full += kBf16 * (w.keys_values - static_cast<double>(2 * model.kv_width())) / tp;
  }

  const bool fp8 = training.precision == DataType::kFp8;
  const double input_bytes = fp8 && software.fp8_keeps_inputs ? kFp8 : kBf16;
  const Remade again = form.recomputes ? remade(training, with_experts) : Remade{};
  LayerActivations result;
  double& kept = result.kept;

  // Of the stack's bytes a hidden channel the last two are the attention output, the first four the
  // residual streams into both norms, and what else there is, the norms' outputs and copies, goes
  // where norms are made again.
  const double stream_bytes = std::max(0.0, software.activation_hidden_bytes - kBf16);
  const double streams = again.second_stream ? kBf16
                         : again.norms       ? 2 * kBf16
                                             : std::min(stream_bytes, 2 * kBf16);
  const double norms = again.norms ? 0 : std::max(0.0, stream_bytes - 2 * kBf16);
  const double inputs = std::min(norms, 2 * kBf16);  // of the column-parallel products
  kept += (streams + norms - inputs + inputs * input_bytes / kBf16) * w.hidden * stream_share;
  if (splits_sequence && !software.tp_regather_in_backward) {
    // Those inputs are kept as gathered.
    kept += inputs * input_bytes / kBf16 * w.hidden * (1 - 1 / tp);
  }
  // Latents are the inputs that queries, keys and values are made of; only a layer that is made
  // again from its own input has none.
  const bool whole_layer = again.queries_keys_values && again.second_stream;
  if (!whole_layer) kept += kBf16 * w.latent * stream_share;
  if (!again.queries_keys_values) kept += (kBf16 * w.query + kBf16 * w.keys_values) / tp;
  if (!again.output) {
    const double bytes = fp8 ? software.fp8_attention_output_bytes : kBf16;
    kept += std::min(bytes, software.activation_hidden_bytes) * w.output / tp;
  }
  if (!again.core_attention) kept += kFp32 * w.heads / tp;

  // Of the stack's bytes a feed-forward channel two are the product, the others gate and up, and
  // copies. A product that is made again is made from gate and up.
  const double ffn_bytes = software.activation_ffn_bytes * gate_share(model);
  const double product_bytes = std::min(kBf16, ffn_bytes);
  double up_bytes = ffn_bytes - product_bytes;
  if (again.product) up_bytes = (model.gated_mlp && !again.half_of_up ? 2 : 1) * kBf16;
  if (fp8 && software.fp8_keeps_activation_inputs) up_bytes *= kFp8 / kBf16;
  const double routed_ffn = w.ffn - (again.shared_up ? w.shared_ffn : 0);
  if (!again.up) kept += up_bytes * routed_ffn / tp;
  if (!again.product) kept += product_bytes * input_bytes / kBf16 * routed_ffn / tp;
  if (!again.transfers) {
    kept += (input_bytes + (software.keeps_expert_results ? kBf16 : 0)) * w.sent / tp;
    kept += kFp32 * w.scores * stream_share;
  }

  const double freed = std::max(0.0, full - result.kept);
  const double gathered = splits_sequence ? kBf16 * w.hidden : 0;
  // Context parallelism by all-gather has K and V of the whole sequence, (cp - 1) more of them for
  // each local token; a ring has those of one other rank; an exchange of heads has no more than its
  // own.
  const double others = plan.context == ContextParallel::kAllGather
                            ? static_cast<double>(plan.cp - 1)
                        : plan.context == ContextParallel::kRing && plan.cp > 1 ? 1
                                                                                : 0;
  const double kv_gathered = others * kBf16 * w.keys_values / tp;
  result.forward = freed + gathered + kv_gathered;
  // One block's gradients at a time: of product, gate and up, or of attention with dQ summed in
  // fp32.
  const double mlp_gradients = (model.gated_mlp ? 3 : 2) * kBf16 * w.ffn / tp;
  const double attention_gradients =
      (kFp32 * w.query + 2 * kBf16 * w.output + kBf16 * w.keys_values) / tp + 2 * kv_gathered;
  result.backward = freed + 2 * gathered + 2 * kBf16 * w.hidden * stream_share +
                    std::max(mlp_gradients, attention_gradients);
  return result;
}

}  // namespace herdsim

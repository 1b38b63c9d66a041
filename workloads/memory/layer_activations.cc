#include "workloads/memory/layer_activations.h"

#include <algorithm>

#include "workloads/layer_parameters.h"

namespace herdsim {
namespace {

constexpr double kBf16 = 2, kFp32 = 4;

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
    sent = 2 * routed * static_cast<double>(model.hidden);
  }
  double hidden, latent, query, keys_values, output, heads;
  double ffn = 0;
  double sent = 0;  // copies of the token at the experts, and what they made of them
};

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
  if (with_experts) tensors.push_back({"tokens at experts and back", kBf16 * w.sent});
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

  // The attention output is the last of the stack's hidden bytes that it would free.
  const double output_kept = std::min(kBf16, software.activation_hidden_bytes) * w.output / tp;
  const double stream_bytes = std::max(0.0, software.activation_hidden_bytes - kBf16);
  double stream_kept = stream_bytes * w.hidden * stream_share;
  if (splits_sequence && !software.tp_regather_in_backward) {
    // Beyond the two residual streams these are inputs of column-parallel layers, kept as gathered.
    const double inputs = std::clamp(stream_bytes - 2 * kBf16, 0.0, 2 * kBf16);
    stream_kept += inputs * w.hidden * (1 - 1 / tp);
  }
  const double qkv_kept = (kBf16 * w.query + kBf16 * w.keys_values) / tp;
  const double latents_kept = kBf16 * w.latent * stream_share;
  const double ffn_kept =
      (software.activation_ffn_bytes * gate_share(model) * w.ffn + kBf16 * w.sent) / tp;
  const double log_sum_exp = kFp32 * w.heads / tp;

  LayerActivations result;
  switch (form.recomputes ? training.recompute : Recompute::kNone) {
    case Recompute::kNone:
      result.kept = stream_kept + latents_kept + qkv_kept + output_kept + ffn_kept + log_sum_exp;
      break;
    case Recompute::kSelective:
      result.kept = stream_kept + latents_kept + qkv_kept + output_kept + ffn_kept;
      break;
    case Recompute::kElementwise:
      result.kept = 2 * kBf16 * w.hidden * stream_share + latents_kept + qkv_kept + output_kept +
                    (kBf16 * (model.gated_mlp ? 2 : 1) * w.ffn + kBf16 * w.sent) / tp + log_sum_exp;
      break;
    case Recompute::kHalfTheProducts:
      result.kept = 2 * kBf16 * w.hidden * stream_share + latents_kept + qkv_kept + output_kept +
                    (kBf16 * w.ffn + kBf16 * w.sent) / tp + log_sum_exp;
      break;
    case Recompute::kKeepQkv:
      result.kept = kBf16 * w.hidden * stream_share + latents_kept + qkv_kept;
      break;
    case Recompute::kKeepQkvAndOutput:
      result.kept = 2 * kBf16 * w.hidden * stream_share + latents_kept + qkv_kept;
      break;
    case Recompute::kFull:
      result.kept = kBf16 * w.hidden * stream_share;
      break;
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

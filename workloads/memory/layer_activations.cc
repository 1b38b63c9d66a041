#include "workloads/memory/layer_activations.h"

#include <algorithm>

namespace herdsim {
namespace {

constexpr double kBf16 = 2, kFp32 = 4;

// Feed-forward layers a token goes through.
double mlp_visits(const ModelArchitecture& model) {
  return model.is_moe() ? static_cast<double>(model.experts_per_token + model.shared_experts) : 1.0;
}

// A stack counts its feed-forward bytes for a gated MLP: gate, up and product; without the gate a
// third is not there.
double gate_share(const ModelArchitecture& model) { return model.gated_mlp ? 1.0 : 2.0 / 3.0; }

struct Widths {
  explicit Widths(const ModelArchitecture& model)
      : hidden(static_cast<double>(model.hidden)),
        query(static_cast<double>(model.query_width())),
        kv(static_cast<double>(model.kv_width())),
        heads(static_cast<double>(model.heads)),
        ffn(static_cast<double>(model.ffn) * mlp_visits(model)),
        sent(model.is_moe() ? static_cast<double>(model.hidden * model.experts_per_token) : 0) {}
  double hidden, query, kv, heads, ffn;
  double sent;  // copies of the token at the experts
};

}  // namespace

std::vector<ActivationTensor> activation_tensors(const ModelArchitecture& model) {
  const Widths w(model);
  std::vector<ActivationTensor> tensors = {
      {"residual stream into norm 1", kBf16 * w.hidden, true},
      {"norm 1 output", kBf16 * w.hidden, true},
      {"Q", kBf16 * w.query},
      {"K, V", 2 * kBf16 * w.kv},
      {"attention output", kBf16 * w.query},
      {"log-sum-exp", kFp32 * w.heads},
      {"residual stream into norm 2", kBf16 * w.hidden, true},
      {"norm 2 output", kBf16 * w.hidden, true},
      {model.gated_mlp ? "gate, up" : "up", (model.gated_mlp ? 2 : 1) * kBf16 * w.ffn},
      {"product", kBf16 * w.ffn},
  };
  if (model.is_moe()) tensors.push_back({"tokens at experts", kBf16 * w.sent});
  return tensors;
}

LayerActivations layer_activations(const ModelArchitecture& model, const ParallelPlan& plan,
                                   const Training& training, const SoftwareStack& software) {
  const Widths w(model);
  const auto tp = static_cast<double>(plan.tp);
  const bool splits_sequence = plan.sequence_parallel && plan.tp > 1;
  const double stream_share = splits_sequence || plan.tp == 1 ? 1 / tp : 1.0;

  double full = 0;
  for (const ActivationTensor& tensor : activation_tensors(model)) {
    full += tensor.bytes * (tensor.whole_without_sequence_parallel ? stream_share : 1 / tp);
  }

  // The attention output is the last of the stack's hidden bytes that it would free.
  const double output_kept = std::min(kBf16, software.activation_hidden_bytes) * w.query / tp;
  const double stream_bytes = std::max(0.0, software.activation_hidden_bytes - kBf16);
  double stream_kept = stream_bytes * w.hidden * stream_share;
  if (splits_sequence && !software.tp_regather_in_backward) {
    // Beyond the two residual streams these are inputs of column-parallel layers, kept as gathered.
    const double inputs = std::clamp(stream_bytes - 2 * kBf16, 0.0, 2 * kBf16);
    stream_kept += inputs * w.hidden * (1 - 1 / tp);
  }
  const double qkv_kept = (kBf16 * w.query + 2 * kBf16 * w.kv) / tp;
  const double ffn_kept =
      (software.activation_ffn_bytes * gate_share(model) * w.ffn + kBf16 * w.sent) / tp;
  const double log_sum_exp = kFp32 * w.heads / tp;

  LayerActivations result;
  switch (training.recompute) {
    case Recompute::kNone:
      result.kept = stream_kept + qkv_kept + output_kept + ffn_kept + log_sum_exp;
      break;
    case Recompute::kSelective:
      result.kept = stream_kept + qkv_kept + output_kept + ffn_kept;
      break;
    case Recompute::kElementwise:
      result.kept = 2 * kBf16 * w.hidden * stream_share + qkv_kept + output_kept +
                    (kBf16 * (model.gated_mlp ? 2 : 1) * w.ffn + kBf16 * w.sent) / tp + log_sum_exp;
      break;
    case Recompute::kHalfTheProducts:
      result.kept = 2 * kBf16 * w.hidden * stream_share + qkv_kept + output_kept +
                    (kBf16 * w.ffn + kBf16 * w.sent) / tp + log_sum_exp;
      break;
    case Recompute::kKeepQkv:
      result.kept = kBf16 * w.hidden * stream_share + qkv_kept;
      break;
    case Recompute::kKeepQkvAndOutput:
      result.kept = 2 * kBf16 * w.hidden * stream_share + qkv_kept;
      break;
    case Recompute::kFull:
      result.kept = kBf16 * w.hidden * stream_share;
      break;
  }

  const double freed = std::max(0.0, full - result.kept);
  const double gathered = splits_sequence ? kBf16 * w.hidden : 0;
  // Context parallelism has K and V of the whole sequence: (cp - 1) more of them for each local
  // token.
  const double kv_gathered = static_cast<double>(plan.cp - 1) * 2 * kBf16 * w.kv / tp;
  result.forward = freed + gathered + kv_gathered;
  // One block's gradients at a time: of product, gate and up, or of attention with dQ summed in
  // fp32.
  const double mlp_gradients = (model.gated_mlp ? 3 : 2) * kBf16 * w.ffn / tp;
  const double attention_gradients =
      ((kBf16 + kFp32 + kBf16) * w.query + 2 * kBf16 * w.kv) / tp + 2 * kv_gathered;
  result.backward = freed + 2 * gathered + 2 * kBf16 * w.hidden * stream_share +
                    std::max(mlp_gradients, attention_gradients);
  return result;
}

}  // namespace herdsim

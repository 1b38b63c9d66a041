#include "workloads/layer_kernels.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace herdsim {

ExpertShares expert_shares(const WorkloadSpec& spec) {
  const ModelArchitecture& m = spec.model;
  const ParallelPlan& plan = spec.plan;
  const Training& training = spec.training;
  ExpertShares e;
  // With a capacity below what tokens ask for on the mean, even balanced experts drop some.
  const double kept =
      training.expert_capacity_factor > 0 ? std::min(1.0, training.expert_capacity_factor) : 1.0;
  e.sent = std::llround(static_cast<double>(spec.local_tokens() * m.experts_per_token) * kept);
  e.received = e.sent * plan.expert_ranks();
  e.local = m.experts / plan.ep;
  e.a_local = std::max<int64_t>(1, (e.received + e.local / 2) / e.local);
  e.width = m.expert_width() / plan.expert_ranks();
  const double tensor =
      static_cast<double>(e.sent * m.hidden) * std::max(1.0, training.expert_load());
  e.dispatch = Bytes(std::llround(
      tensor * static_cast<double>(bytes_per_element(spec.software.expert_dispatch_type))));
  e.combine = Bytes(std::llround(tensor * 2));
  if (plan.expert_ranks() > 1) {
    e.tensor_gather = Bytes(std::llround(tensor * 2 * static_cast<double>(plan.expert_ranks())));
  }
  return e;
}

Kernel LayerKernels::stream(std::string name, double moved, StreamClass stream_class) const {
  return {std::move(name), TimeTerm::kMemoryBound,
          MemoryTraffic{Bytes(static_cast<int64_t>(std::llround(moved))), stream_class}};
}

Kernel LayerKernels::forward(const Product& p, int64_t rows) const {
  return gemm(p.name, rows, p.out, p.in, GemmPass::kForward, linear_type());
}

Kernel LayerKernels::dgrad(const Product& p, int64_t rows) const {
  return gemm(p.name, rows, p.in, p.out, GemmPass::kDgrad, linear_type());
}

void LayerKernels::append_wgrad(std::vector<Kernel>& kernels, const Product& p,
                                int64_t rows) const {
  kernels.push_back(gemm(p.name, p.out, p.in, rows, GemmPass::kWgrad, linear_type()));
  const double accumulated =
      static_cast<double>(p.in * p.out) * spec_.software.gradient_accumulation_bytes;
  kernels.push_back(stream(p.name + " accumulate", accumulated, spec_.software.gradient_stream));
}

void LayerKernels::append_forward_casts(std::vector<Kernel>& kernels, const Product& p,
                                        int64_t rows, Gathered input) const {
  if (linear_type() != DataType::kFp8) return;
  const SoftwareStack& s = spec_.software;
  append_cast(kernels, p.name + " cast",
              own_share(input) * static_cast<double>(rows * p.in) * s.fp8_input_cast_bytes +
                  static_cast<double>(p.in * p.out) * s.fp8_weight_cast_bytes);
}

void LayerKernels::append_backward_casts(std::vector<Kernel>& kernels, const Product& p,
                                         int64_t rows, Gathered gradient, bool data,
                                         bool weight) const {
  if (linear_type() != DataType::kFp8) return;
  const SoftwareStack& s = spec_.software;
  const auto inputs = static_cast<double>(rows * p.in);
  const auto gradients = static_cast<double>(rows * p.out);
  double bytes = 0;
  if (data) {
    bytes += own_share(gradient) * gradients * s.fp8_gradient_cast_bytes +
             static_cast<double>(p.in * p.out) * s.fp8_weight_turn_bytes;
  }
  if (weight) bytes += gradients * s.fp8_gradient_turn_bytes + inputs * s.fp8_input_turn_bytes;
  append_cast(kernels, p.name + " gradient cast", bytes);
}

double LayerKernels::own_share(Gathered tensor) const {
  const bool before = tensor == Gathered::kYes && spec_.splits_sequence() &&
                      (spec_.software.tp_fp8_gathers || spec_.software.tp_fp8_transfers);
  return before ? 1.0 / static_cast<double>(spec_.plan.tp) : 1.0;
}

void LayerKernels::append_cast(std::vector<Kernel>& kernels, std::string name,
                               double bytes) const {
  if (bytes > 0) kernels.push_back(stream(std::move(name), bytes, spec_.software.forward.stream));
}

Kernel LayerKernels::expert_gemm(const std::string& name, int64_t m, int64_t n, int64_t k,
                                 GemmPass pass, const ExpertShares& e) const {
  Kernel kernel = gemm(name, m, n, k, pass, linear_type());
  if (spec_.software.grouped_gemm) {
    std::get<GemmShape>(kernel.work).groups = e.local;
  } else {
    kernel.repeats = static_cast<double>(e.local);
  }
  kernel.uneven = Uneven::kExperts;
  return kernel;
}

Kernel LayerKernels::expert_forward(const Product& p, const ExpertShares& e) const {
  return expert_gemm(p.name, e.a_local, p.out, p.in, GemmPass::kForward, e);
}

Kernel LayerKernels::expert_dgrad(const Product& p, const ExpertShares& e) const {
  return expert_gemm(p.name, e.a_local, p.in, p.out, GemmPass::kDgrad, e);
}

void LayerKernels::append_expert_wgrad(std::vector<Kernel>& kernels, const Product& p,
                                       const ExpertShares& e) const {
  kernels.push_back(expert_gemm(p.name, p.out, p.in, e.a_local, GemmPass::kWgrad, e));
  const double accumulated =
      static_cast<double>(p.in * p.out * e.local) * spec_.software.gradient_accumulation_bytes;
  kernels.push_back(stream(p.name + " accumulate", accumulated, spec_.software.gradient_stream));
}

AttentionShape LayerKernels::attention_shape(AttentionPass pass) const {
  AttentionShape shape;
  shape.batch = spec_.plan.micro_batch;
  shape.query_tokens = spec_.training.sequence_length / spec_.plan.cp;
  shape.kv_tokens = spec_.training.sequence_length;
  shape.heads = spec_.model.heads / spec_.plan.tp;
  shape.kv_heads = kv_heads_on_rank(spec_.model, spec_.plan.tp);
  if (spec_.plan.context == ContextParallel::kAllToAll) {
    shape.query_tokens = spec_.training.sequence_length;
    shape.heads /= spec_.plan.cp;
    shape.kv_heads = std::max<int64_t>(1, shape.kv_heads / spec_.plan.cp);
  }
  shape.head_dim = spec_.model.key_head_dim();
  shape.value_head_dim = spec_.model.value_dim();
  shape.mask_fraction = 0.5 * spec_.training.document_mask_fraction;
  shape.pass = pass;
  return shape;
}

Kernel LayerKernels::attention(const AttentionShape& shape) const {
  Kernel kernel{"attention", TimeTerm::kCompute, shape};
  kernel.uneven = Uneven::kDocuments;
  return kernel;
}

std::vector<Kernel> LayerKernels::attention_with_copies(AttentionPass pass) const {
  std::vector<Kernel> kernels = {attention(attention_shape(pass))};
  if (spec_.model.alternate_window > 0) {
    // Every layer is taken as half of each kind. The mask leaves a band of the window's width.
    AttentionShape banded = attention_shape(pass);
    banded.mask_fraction = std::min(banded.mask_fraction,
                                    static_cast<double>(spec_.model.alternate_window) /
                                        static_cast<double>(spec_.training.sequence_length));
    kernels.push_back(attention(banded));
    for (Kernel& kernel : kernels) kernel.repeats = 0.5;
  }
  const SoftwareStack& software = spec_.software;
  if (software.unpad_hidden_bytes > 0 && software.attention_kernel == "fa2") {
    const double moved = static_cast<double>(tokens() * spec_.model.query_width()) /
                         static_cast<double>(spec_.plan.tp) * software.unpad_hidden_bytes;
    kernels.push_back(stream("unpad, pad", moved, software.forward.stream));
  }
  return kernels;
}

Kernel LayerKernels::elementwise(std::string name, const ElementwiseTraffic& traffic,
                                 double hidden_share) const {
  const auto t = static_cast<double>(tokens());
  const double split = spec_.splits_sequence() ? static_cast<double>(spec_.plan.tp) : 1.0;
  const double moved =
      t * (hidden_share * traffic.hidden_bytes * static_cast<double>(spec_.model.hidden) / split);
  return stream(std::move(name), moved, traffic.stream);
}

Kernel LayerKernels::activation(const ElementwiseTraffic& traffic, double rows,
                                int64_t width) const {
  return stream("activation", rows * traffic.ffn_bytes * static_cast<double>(width),
                traffic.stream);
}

int64_t LayerKernels::mlp_width(bool shared) const {
  const ModelArchitecture& m = spec_.model;
  return (shared ? m.shared_experts * m.expert_width() : m.ffn) / spec_.plan.tp;
}

Product LayerKernels::up(bool shared) const {
  return {"gate, up", spec_.model.hidden, (spec_.model.mlp_matrices() - 1) * mlp_width(shared)};
}

Product LayerKernels::down(bool shared) const {
  return {"down", mlp_width(shared), spec_.model.hidden};
}

std::vector<Product> LayerKernels::qkv() const {
  const ModelArchitecture& m = spec_.model;
  const int64_t tp = spec_.plan.tp;
  if (!m.is_latent()) {
    const int64_t kv = 2 * kv_heads_on_rank(m, tp) * m.head_dim;
    return {{"qkv", m.hidden, m.query_width() / tp + kv}};
  }
  const int64_t query_in = m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden;
  return {{"q up", query_in, m.query_width() / tp},
          {"kv up", m.kv_lora_rank, m.heads * (m.head_dim + m.value_dim()) / tp}};
}

Product LayerKernels::proj() const {
  return {"proj", spec_.model.attention_width() / spec_.plan.tp, spec_.model.hidden};
}

Product LayerKernels::latents() const {
  return {"latents", spec_.model.hidden, spec_.model.latent_width()};
}

Bytes LayerKernels::keys_and_values() const {
  const ModelArchitecture& m = spec_.model;
  // Latents are expanded to a key and a value for every head.
  const int64_t width = m.is_latent() ? m.heads / spec_.plan.tp * (m.key_head_dim() + m.value_dim())
                                      : 2 * kv_heads_on_rank(m, spec_.plan.tp) * m.head_dim;
  return Bytes(spec_.plan.micro_batch * spec_.training.sequence_length * width * 2);
}

}  // namespace herdsim

#include "workloads/column_row_block.h"

namespace herdsim {
namespace {

std::string named(std::string_view name, std::string_view again) {
  return std::string(name) + std::string(again);
}

int append_qkv(const BlockBuilder& b, int at, std::string_view again, bool from_latents = false) {
  std::vector<Kernel> kernels;
  for (const Product& product : b.k.qkv()) kernels.push_back(b.k.forward(product, b.k.tokens()));
  for (const Product& product : b.k.qkv()) {
    b.k.append_forward_casts(kernels, product, b.k.tokens(), LayerKernels::Gathered::kYes);
  }
  kernels.push_back(b.k.elementwise("rope", b.spec.software.forward, 0.2));
  if (!b.spec.model.is_latent()) {
    const Bytes input = b.spec.gathered_activation() * b.k.gathers(b.k.attention_readers());
    return b.t.gather_then(named("qkv", again), input, std::move(kernels), {at});
  }
  if (!from_latents) {
    at = b.t.compute(named("latents", again), {b.k.forward(b.k.latents(), b.spec.local_tokens())},
                     {at});
  }
  return b.t.gather_then(named("q, k, v up", again),
                         b.spec.gathered_activation(b.spec.model.latent_width()),
                         std::move(kernels), {at});
}

bool is_ring(const BlockBuilder& b) {
  return b.spec.plan.cp > 1 && b.spec.plan.context == ContextParallel::kRing;
}

// Attention against K and V of one context rank after another. Ranks hold chunks i and 2 CP - 1 - i
// of the sequence, so that each piece but a rank's own is half of a full square, whoever's it is.
int append_ring(const BlockBuilder& b, AttentionPass pass, int at) {
  const int64_t cp = b.spec.plan.cp;
  const bool forward = pass == AttentionPass::kForward;
  AttentionShape own = b.k.attention_shape(pass);
  own.kv_tokens = own.query_tokens;
  AttentionShape other = own;
  other.kv_tokens = (own.kv_tokens + 1) / 2;
  other.mask_fraction = 2 * own.mask_fraction;
  const int64_t repeats = b.spec.software.ring_repeats_kv ? own.heads / own.kv_heads : 1;
  // Backward, the gradients of K and V travel with them.
  const Bytes piece = b.k.keys_and_values() * repeats / cp * (forward ? 1 : 2);
  const auto queries = static_cast<double>(b.k.tokens() * b.k.proj().in);
  const double keys_and_values = static_cast<double>(piece.count()) / (forward ? 2 : 4);
  // Beside each piece but a rank's own.
  const double merged = forward ? b.spec.software.ring_merge_bytes * queries
                                : b.spec.software.ring_gradient_bytes * (queries + keys_and_values);
  int arrived = at, done = at;
  for (int64_t i = 0; i < cp; ++i) {
    const int next =
        i + 1 < cp ? b.t.context(CollectiveKind::kSendRecv, piece, {arrived}) : kBefore;
    std::vector<Kernel> kernels = {b.k.attention(i == 0 ? own : other)};
    if (i > 0 && merged > 0) {
      kernels.push_back(b.k.stream("merge", merged, b.spec.software.forward.stream));
    }
    done = b.t.compute(forward ? "attention" : "attention backward", std::move(kernels),
                       i == 0 ? std::vector<int>{done} : std::vector<int>{done, arrived});
    arrived = next;
  }
  // Home to whom they belong.
  if (!forward) done = b.t.context(CollectiveKind::kSendRecv, piece / 2, {done});
  return done;
}

// Bytes of Q, K and V, or of the attention output, of this rank's tokens and heads.
Bytes exchanged(const BlockBuilder& b, bool qkv) {
  const ModelArchitecture& m = b.spec.model;
  const int64_t kv = kv_heads_on_rank(m, b.spec.plan.tp) * (m.key_head_dim() + m.value_dim());
  const int64_t tp = b.spec.plan.tp;
  return b.spec.activation(qkv ? m.query_width() / tp + kv : m.attention_width() / tp);
}

}  // namespace

int append_attention_forward(const BlockBuilder& b, int at, const AttentionParts& parts,
                             std::string_view again) {
  const bool exchanges = b.spec.plan.context == ContextParallel::kAllToAll;
  if (parts.qkv) {
    at = append_qkv(b, at, again);
    if (b.spec.plan.context == ContextParallel::kAllGather) {
      at = b.t.context(CollectiveKind::kAllGather, b.k.keys_and_values(), {at});
    } else if (exchanges) {
      at = b.t.context(CollectiveKind::kAllToAll, exchanged(b, true), {at});
    }
  }
  if (!parts.qkv && parts.from_latents) at = append_qkv(b, at, again, true);
  std::vector<Kernel> kernels;
  if (parts.attention && is_ring(b)) {
    at = append_ring(b, AttentionPass::kForward, at);
  } else if (parts.attention) {
    kernels = b.k.attention_with_copies(AttentionPass::kForward);
  }
  if (parts.attention && exchanges && b.spec.plan.cp > 1) {
    at = b.t.compute(named("attention", again), std::move(kernels), {at});
    at = b.t.context(CollectiveKind::kAllToAll, exchanged(b, false), {at});
    kernels.clear();
  }
  if (parts.projection <= 0)
    return b.t.compute(named("attention", again), std::move(kernels), {at});
  Kernel projection = b.k.forward(b.k.proj(), b.k.tokens());
  projection.repeats = parts.projection;
  kernels.push_back(std::move(projection));
  b.k.append_forward_casts(kernels, b.k.proj(), b.k.tokens(), LayerKernels::Gathered::kNo);
  return b.t.then_reduce(named("attention, proj", again), b.spec.scattered_activation(),
                         std::move(kernels), {at});
}

int append_attention_backward(const BlockBuilder& b, int at, BackwardPart part) {
  const bool latent = b.spec.model.is_latent();
  ColumnRowBlock block{.row = b.k.proj(),
                       .columns = b.k.qkv(),
                       .input = latent ? b.spec.model.latent_width() : b.spec.model.hidden,
                       .readers = b.k.attention_readers()};
  if (latent) block.source = b.k.latents();
  std::vector<Kernel> attention = b.k.attention_with_copies(AttentionPass::kBackward);
  const Kernel rope = b.k.elementwise("rope", b.spec.software.backward, 0.2);
  attention.push_back(rope);
  const Bytes kv = b.k.keys_and_values();
  if (b.spec.plan.cp == 1 || !has_input(part)) {
    block.middle = std::move(attention);
    return append_block_backward(b, at, part, block);
  }
  switch (b.spec.plan.context) {
    case ContextParallel::kAllGather:
      at = b.t.context(CollectiveKind::kAllGather, kv, {at});
      block.middle = std::move(attention);
      block.after_middle = [&b, kv](int middle) {
        return b.t.context(CollectiveKind::kReduceScatter, kv, {middle});
      };
      break;
    case ContextParallel::kRing:
      block.after_middle = [&b, rope](int middle) {
        middle = append_ring(b, AttentionPass::kBackward, middle);
        return b.t.compute("rope backward", {rope}, {middle});
      };
      break;
    case ContextParallel::kAllToAll:
      block.after_middle = [&b, attention](int middle) {
        middle = b.t.context(CollectiveKind::kAllToAll, exchanged(b, false), {middle});
        middle = b.t.compute("attention backward", attention, {middle});
        return b.t.context(CollectiveKind::kAllToAll, exchanged(b, true), {middle});
      };
      break;
  }
  return append_block_backward(b, at, part, block);
}

}  // namespace herdsim

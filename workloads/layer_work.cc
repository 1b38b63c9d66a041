#include "workloads/layer_work.h"

#include "workloads/layer_blocks.h"

namespace herdsim {
namespace {

int append_feed_forward(const BlockBuilder& b, int at, bool has_experts,
                        const FeedForwardParts& parts = {}, std::string_view again = "") {
  return has_experts ? append_experts_forward(b, at, parts, again)
                     : append_dense_forward(b, at, parts, again);
}

// Norm and attention block, then norm and feed-forward block.
void append_layer_forward(const BlockBuilder& b, bool has_experts) {
  const ElementwiseTraffic& traffic = b.spec.software.forward;
  int at = b.t.compute("norm", {b.k.elementwise("norm", traffic, 0.3)}, {kBefore});
  at = append_attention_forward(b, at);
  at = b.t.compute("residual, norm", {b.k.elementwise("residual, norm", traffic, 0.3)}, {at});
  at = append_feed_forward(b, at, has_experts);
  b.t.compute("residual", {b.k.elementwise("residual", traffic, 0.2)}, {at});
}

// What a recomputation makes again. Where a product is made, what its input is gathered from is,
// too.
struct RecomputedParts {
  bool norms = false, feeds_forward = false;
  AttentionParts attention{.qkv = false, .attention = false, .projection = 0};
  FeedForwardParts feed_forward{.up = 0, .down = false};
  bool shared_experts = false;  // alone

  // Norms and activation functions, with what else is said.
  static RecomputedParts elementwise_and(const AttentionParts& attention,
                                         const FeedForwardParts& feed_forward) {
    return {
        .norms = true, .feeds_forward = true, .attention = attention, .feed_forward = feed_forward};
  }
};

RecomputedParts selected_parts(const WorkloadSpec& spec, bool has_experts) {
  const auto selects = [&](RecomputeModule module) { return spec.training.selects(module); };
  const bool whole = selects(has_experts ? RecomputeModule::kExperts : RecomputeModule::kMlp);
  return {.norms = selects(RecomputeModule::kNorms),
          .feeds_forward = whole || selects(RecomputeModule::kActivation),
          .attention = {.qkv = false,
                        .attention = selects(RecomputeModule::kCoreAttention),
                        .from_latents = selects(RecomputeModule::kMlaUpProjection),
                        .projection = 0},
          .feed_forward = {.up = whole ? 1.0 : 0.0,
                           .down = whole && !spec.software.recompute_stops_early},
          .shared_experts = has_experts && !whole && selects(RecomputeModule::kSharedExperts)};
}

RecomputedParts recomputed_parts(const WorkloadSpec& spec, bool has_experts) {
  switch (spec.training.recompute) {
    case Recompute::kNone:
      return {};
    case Recompute::kSelective:
      return selected_parts(spec, has_experts);
    case Recompute::kElementwise:
      return RecomputedParts::elementwise_and({.qkv = false, .attention = false, .projection = 0},
                                              {.up = 0, .down = false});
    case Recompute::kHalfTheProducts:
      // Of q, k, v, output, gate, up, down in this order every second one.
      return RecomputedParts::elementwise_and({.qkv = false, .attention = false, .projection = 1},
                                              {.up = 0.5, .down = false});
    case Recompute::kKeepQkv:
      return RecomputedParts::elementwise_and({.qkv = false, .attention = true, .projection = 1},
                                              {.up = 1, .down = false});
    case Recompute::kKeepQkvAndOutput:
      return RecomputedParts::elementwise_and({.qkv = false, .attention = true, .projection = 0},
                                              {.up = 1, .down = false});
    case Recompute::kFull:
      break;
  }
  return RecomputedParts::elementwise_and({},
                                          {.up = 1, .down = !spec.software.recompute_stops_early});
}

int append_recomputation(const BlockBuilder& b, int at, bool has_experts) {
  const RecomputedParts parts = recomputed_parts(b.spec, has_experts);
  const ElementwiseTraffic& traffic = b.spec.software.forward;
  if (parts.norms) {
    at = b.t.compute("norm again", {b.k.elementwise("norm", traffic, 0.3)}, {at});
  }
  at = append_attention_forward(b, at, parts.attention, " again");
  if (parts.norms) {
    at = b.t.compute("residual, norm again", {b.k.elementwise("residual, norm", traffic, 0.3)},
                     {at});
  }
  if (parts.feeds_forward)
    at = append_feed_forward(b, at, has_experts, parts.feed_forward, " again");
  return parts.shared_experts ? append_shared_experts_forward(b, at, " again") : at;
}

void append_layer_backward(const BlockBuilder& b, BackwardPart part, const LayerKind& kind) {
  int at = kBefore;
  if (has_input(part)) {
    if (kind.recomputes) at = append_recomputation(b, at, kind.has_experts);
    const ElementwiseTraffic& traffic = b.spec.software.backward;
    at = b.t.compute("residual gradient", {b.k.elementwise("residual", traffic, 0.2)}, {at});
  }
  at = kind.has_experts ? append_experts_backward(b, at, part) : append_dense_backward(b, at, part);
  append_attention_backward(b, at, part);
}

}  // namespace

PassTemplates layer_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works,
                              const LayerKind& kind) {
  const LayerKernels kernels(spec);
  PassTemplates out;
  TemplateBuilder forward(spec, works);
  append_layer_forward({forward, kernels, spec}, kind.has_experts);
  out.forward = forward.build();
  const auto backward = [&](BackwardPart part) {
    TemplateBuilder builder(spec, works);
    append_layer_backward({builder, kernels, spec}, part, kind);
    return builder.build();
  };
  out.backward = backward(BackwardPart::kBoth);
  out.backward_input = backward(BackwardPart::kInput);
  out.backward_weight = backward(BackwardPart::kWeight);
  return out;
}

PassTemplates embedding_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works) {
  const LayerKernels k(spec);
  const auto tensor = static_cast<double>(spec.activation().count());
  const auto reduce =
      spec.splits_sequence() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  PassTemplates out;
  TemplateBuilder forward(spec, works);
  // Rows read and written once; a vocabulary-parallel table leaves partial sums.
  int at = forward.compute("embedding", {k.stream("lookup", 2 * tensor, StreamClass::kFramework)},
                           {kBefore});
  // A whole table leaves none: each rank keeps its part of the rows.
  if (!spec.replicates_table()) forward.tensor(reduce, spec.activation(), {at});
  out.forward = forward.build();
  TemplateBuilder backward(spec, works);
  at = kBefore;
  if (spec.splits_sequence()) {
    at = backward.tensor(CollectiveKind::kAllGather, spec.activation(), {at});
  }
  // Gradients read in bf16 and added to fp32 rows.
  backward.compute("embedding gradient", {k.stream("scatter", 5 * tensor, StreamClass::kFramework)},
                   {at});
  out.backward = backward.build();
  out.backward_input = out.backward;
  return out;
}

PassTemplates head_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works) {
  const LayerKernels k(spec);
  const auto h = spec.model.hidden;
  const int64_t vocab = spec.model.vocab / spec.plan.tp;
  const bool gathers = spec.software.tp_gathers_logits && spec.plan.tp > 1;
  const int64_t scored = gathers ? spec.model.vocab : vocab;  // logits a token in this rank's loss
  const double logits =
      static_cast<double>(spec.tokens()) * static_cast<double>(scored) * spec.software.logit_bytes;
  PassTemplates out;
  TemplateBuilder forward(spec, works);
  int at =
      forward.compute("last norm", {k.elementwise("norm", spec.software.forward, 0.15)}, {kBefore});
  const Kernel product = k.gemm("logits", k.tokens(), vocab, h, GemmPass::kForward, DataType::kBf16);
  const Kernel loss = k.stream("loss", logits / 2, spec.software.logit_stream);
  if (gathers) {
    at = forward.gather_then("logits", spec.activation(), {product}, {at});
    at = forward.tensor(CollectiveKind::kAllGather, spec.activation(scored), {at});
    at = forward.compute("loss", {loss}, {at});
  } else {
    at = forward.gather_then("logits", spec.activation(), {product, loss}, {at});
  }
  // Maximum and sum of every token's logits over the vocabulary shards, or its own logit too, fp32.
  const int64_t reductions = gathers ? 0 : spec.software.loss_reductions;
  for (int64_t r = 0; r < reductions; ++r) {
    at = forward.tensor(CollectiveKind::kAllReduce, Bytes(spec.tokens() * 2 * 4 / reductions), {at});
  }
  out.forward = forward.build();

  const auto backward = [&](BackwardPart part) {
    TemplateBuilder t(spec, works);
    std::vector<Kernel> kernels;
    if (part != BackwardPart::kWeight) {
      kernels.push_back(k.stream("loss gradient", logits / 2, spec.software.logit_stream));
      kernels.push_back(k.gemm("logits", k.tokens(), h, vocab, GemmPass::kDgrad, DataType::kBf16));
    }
    if (part != BackwardPart::kInput) {
      kernels.push_back(k.gemm("logits", vocab, h, k.tokens(), GemmPass::kWgrad, DataType::kBf16));
      kernels.push_back(
          k.stream("logits accumulate",
                   static_cast<double>(vocab * h) * spec.software.gradient_accumulation_bytes,
                   spec.software.gradient_stream));
    }
    if (part == BackwardPart::kWeight) {
      t.compute("logits wgrad", kernels, {kBefore});
    } else {
      t.then_reduce("logits backward", spec.activation(), kernels, {kBefore});
    }
    return t.build();
  };
  out.backward = backward(BackwardPart::kBoth);
  out.backward_input = backward(BackwardPart::kInput);
  out.backward_weight = backward(BackwardPart::kWeight);
  return out;
}

}  // namespace herdsim

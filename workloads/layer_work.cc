#include "workloads/layer_work.h"

#include <cmath>
#include <utility>

namespace herdsim {
namespace {

// Which halves of a backward pass a template holds.
enum class BackwardPart : uint8_t { kBoth, kInput, kWeight };

// Builds one template, appending each new piece of work.
class TemplateBuilder {
 public:
  TemplateBuilder(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works)
      : spec_(spec), works_(works) {}

  // Runs kernels back to back after `after`; does nothing with none. Returns the step to wait for.
  int compute(std::string name, std::vector<Kernel> kernels, std::vector<int> after) {
    if (kernels.empty()) return after.empty() ? kBefore : after.back();
    if (pending_ != kNone) after.push_back(std::exchange(pending_, kNone));
    Work work;
    work.kind = WorkKind::kCompute;
    work.name = std::move(name);
    work.kernels = std::move(kernels);
    return add(std::move(work), std::move(after));
  }

  // A transfer of the tensor-parallel group; none with one rank.
  int tensor(CollectiveKind kind, Bytes bytes, std::vector<int> after) {
    if (spec_.plan.tp == 1) return after.back();
    const bool copies = spec_.software.tp_copy_bytes > 0 && kind != CollectiveKind::kAllReduce;
    if (copies && kind == CollectiveKind::kReduceScatter) after = {copy(bytes, std::move(after))};
    const int done = collective(Communicator::kTensor, Stream::kTp, TimeTerm::kExposedTp, kind,
                                bytes, std::move(after));
    return copies && kind == CollectiveKind::kAllGather ? copy(bytes, {done}) : done;
  }
  int context(CollectiveKind kind, Bytes bytes, std::vector<int> after) {
    if (spec_.plan.cp == 1) return after.back();
    return collective(Communicator::kContext, Stream::kCp, TimeTerm::kExposedCp, kind, bytes,
                      std::move(after));
  }

  // Gathers the sequence-split input of a block and runs its first kernels. With chunked overlap the GEMMs start when
  // the first chunk is there and the rest arrives beside them; the result waits for both.
  int gather_then(std::string name, std::vector<Kernel> kernels, std::vector<int> after,
                  Bytes all) {
    if (!spec_.splits_sequence()) return compute(std::move(name), std::move(kernels), after);
    if (spec_.software.tp_overlap == TpOverlap::kNone) {
      return compute(std::move(name), std::move(kernels),
                     {tensor(CollectiveKind::kAllGather, all, std::move(after))});
    }
    const Bytes chunk = all / spec_.software.tp_overlap_chunks;
    const int first = tensor(CollectiveKind::kAllGather, chunk, std::move(after));
    const int rest = tensor(CollectiveKind::kAllGather, all - chunk, {first});
    const int done = compute(std::move(name), std::move(kernels), {first});
    pending_ = rest;
    return done;
  }

  // Runs the last kernels of a block and reduces its output over the group, in chunks where the stack overlaps.
  // Without sequence parallelism an all-reduce in bf16 does it.
  int then_reduce(std::string name, std::vector<Kernel> kernels, std::vector<int> after,
                  Bytes all) {
    if (!spec_.splits_sequence()) {
      return tensor(CollectiveKind::kAllReduce, spec_.activation(),
                    {compute(std::move(name), std::move(kernels), std::move(after))});
    }
    if (spec_.software.tp_overlap == TpOverlap::kNone) {
      return tensor(CollectiveKind::kReduceScatter, all,
                    {compute(std::move(name), std::move(kernels), std::move(after))});
    }
    const auto chunks = static_cast<double>(spec_.software.tp_overlap_chunks);
    const Bytes last_chunk = all / spec_.software.tp_overlap_chunks;
    std::vector<Kernel> rest = kernels;
    for (Kernel& kernel : kernels) kernel.repeats /= chunks;
    for (Kernel& kernel : rest) kernel.repeats *= 1 - 1 / chunks;
    const int head = compute(name, std::move(kernels), std::move(after));
    const int most = tensor(CollectiveKind::kReduceScatter, all - last_chunk, {head});
    const int tail = compute(std::move(name), std::move(rest), {head});
    return tensor(CollectiveKind::kReduceScatter, last_chunk, {most, tail});
  }

  int last() const { return static_cast<int>(steps_.size()) - 1; }
  WorkTemplate build() { return std::move(steps_); }

 private:
  static constexpr int kNone = -2;

  // The gathered tensor, in bf16, read and written by a kernel of its own.
  int copy(Bytes tensor, std::vector<int> after) {
    const double moved = static_cast<double>(tensor.count()) / 2 * spec_.software.tp_copy_bytes;
    return compute("copy",
                   {{"copy", TimeTerm::kMemoryBound,
                     MemoryTraffic{Bytes(std::llround(moved)), spec_.software.forward.stream}}},
                   std::move(after));
  }

  int collective(Communicator communicator, Stream stream, TimeTerm term, CollectiveKind kind,
                 Bytes bytes, std::vector<int> after) {
    Work work;
    work.kind = WorkKind::kCollective;
    work.stream = stream;
    work.name = std::string(collective_kind_name(kind));
    work.exposed_as = term;
    work.communicator = communicator;
    work.collective = kind;
    work.bytes = bytes;
    return add(std::move(work), std::move(after));
  }

  int add(Work work, std::vector<int> after) {
    steps_.push_back({works_.push_back(std::move(work)), std::move(after)});
    return last();
  }

  const WorkloadSpec& spec_;
  TypedVector<WorkId, Work>& works_;
  WorkTemplate steps_;
  int pending_ = kNone;  // the rest of a chunked gather; the next kernels wait for it
};

// The kernels of a layer, each on one rank of its tensor-parallel group.
class LayerKernels {
 public:
  explicit LayerKernels(const WorkloadSpec& spec) : spec_(spec) {}

  Kernel gemm(std::string name, int64_t m, int64_t n, int64_t k, GemmPass pass,
              DataType dtype) const {
    return {std::move(name), TimeTerm::kCompute, GemmShape{m, n, k, dtype, pass}};
  }
  DataType linear_type() const { return spec_.training.precision; }

  // A linear layer [in -> out] over the group's tokens, split over TP already.
  Kernel forward(std::string name, int64_t in, int64_t out) const {
    return gemm(std::move(name), tokens(), out, in, GemmPass::kForward, linear_type());
  }
  Kernel dgrad(std::string name, int64_t in, int64_t out) const {
    return gemm(std::move(name), tokens(), in, out, GemmPass::kDgrad, linear_type());
  }
  // The weight gradient, and adding it to the accumulated one.
  void append_wgrad(std::vector<Kernel>& kernels, std::string name, int64_t in, int64_t out) const {
    kernels.push_back(gemm(name, out, in, tokens(), GemmPass::kWgrad, linear_type()));
    const double accumulated =
        static_cast<double>(in * out) * spec_.software.gradient_accumulation_bytes;
    kernels.push_back(stream(name + " accumulate", accumulated, spec_.software.gradient_stream));
  }

  Kernel attention(AttentionPass pass) const {
    AttentionShape shape;
    shape.batch = spec_.plan.micro_batch;
    shape.query_tokens = spec_.training.sequence_length / spec_.plan.cp;
    shape.kv_tokens = spec_.training.sequence_length;
    shape.heads = spec_.model.heads / spec_.plan.tp;
    shape.kv_heads = std::max<int64_t>(1, spec_.model.kv_heads / spec_.plan.tp);
    shape.head_dim = spec_.model.head_dim;
    shape.mask_fraction = 0.5 * spec_.training.document_mask_fraction;
    shape.pass = pass;
    return {"attention", TimeTerm::kCompute, shape};
  }

  // With the copies that the kernel needs round it.
  std::vector<Kernel> attention_with_copies(AttentionPass pass) const {
    std::vector<Kernel> kernels = {attention(pass)};
    const SoftwareStack& software = spec_.software;
    if (software.unpad_hidden_bytes > 0 && software.attention_kernel == "fa2") {
      const double moved = static_cast<double>(tokens() * spec_.model.query_width()) /
                           static_cast<double>(spec_.plan.tp) * software.unpad_hidden_bytes;
      kernels.push_back(stream("unpad, pad", moved, software.forward.stream));
    }
    return kernels;
  }

  // A share of the layer's element-wise traffic. The hidden-width part is split by sequence where the plan does so; the
  // feed-forward part is always split by TP.
  Kernel elementwise(std::string name, const ElementwiseTraffic& traffic, double hidden_share,
                     double ffn_share) const {
    const auto t = static_cast<double>(tokens());
    const double split = spec_.splits_sequence() ? static_cast<double>(spec_.plan.tp) : 1.0;
    const double moved =
        t * (hidden_share * traffic.hidden_bytes * static_cast<double>(spec_.model.hidden) / split +
             ffn_share * traffic.ffn_bytes * static_cast<double>(ffn_width()) /
                 static_cast<double>(spec_.plan.tp));
    return stream(std::move(name), moved, traffic.stream);
  }

  Kernel stream(std::string name, double moved, StreamClass stream_class) const {
    return {std::move(name), TimeTerm::kMemoryBound,
            MemoryTraffic{Bytes(static_cast<int64_t>(std::llround(moved))), stream_class}};
  }

  int64_t tokens() const { return spec_.tokens(); }
  int64_t qkv_out() const { return spec_.model.qkv_width() / spec_.plan.tp; }
  int64_t proj_in() const { return spec_.model.query_width() / spec_.plan.tp; }
  // The feed-forward width a token passes: of its experts, where there are experts.
  int64_t ffn_width() const {
    const int64_t active =
        spec_.model.is_moe() ? spec_.model.experts_per_token + spec_.model.shared_experts : 1;
    return spec_.model.ffn * active;
  }
  int64_t up_out() const { return (spec_.model.mlp_matrices() - 1) * ffn_width() / spec_.plan.tp; }
  int64_t down_in() const { return ffn_width() / spec_.plan.tp; }

  // K and V of a whole sequence for this rank's heads.
  Bytes keys_and_values() const {
    const int64_t heads = std::max<int64_t>(1, spec_.model.kv_heads / spec_.plan.tp);
    return Bytes(spec_.plan.micro_batch * spec_.training.sequence_length * 2 * heads *
                 spec_.model.head_dim * 2);
  }

 private:
  const WorkloadSpec& spec_;
};

// Norm and attention block, then norm and feed-forward block.
int append_layer_forward(TemplateBuilder& t, const LayerKernels& k, const WorkloadSpec& spec,
                         int before) {
  const auto h = spec.model.hidden;
  const ElementwiseTraffic& traffic = spec.software.forward;
  int at = t.compute("norm", {k.elementwise("norm", traffic, 0.3, 0)}, {before});
  at = t.gather_then("qkv", {k.forward("qkv", h, k.qkv_out()), k.elementwise("rope", traffic, 0.2, 0)},
                     {at}, spec.linear_activation());
  at = t.context(CollectiveKind::kAllGather, k.keys_and_values(), {at});
  std::vector<Kernel> attention = k.attention_with_copies(AttentionPass::kForward);
  attention.push_back(k.forward("proj", k.proj_in(), h));
  at = t.then_reduce("attention, proj", std::move(attention), {at}, spec.linear_activation());
  at = t.compute("residual, norm", {k.elementwise("residual, norm", traffic, 0.3, 0)}, {at});
  at = t.gather_then("gate, up, activation",
                     {k.forward("gate, up", h, k.up_out()), k.elementwise("activation", traffic, 0, 1)},
                     {at}, spec.linear_activation());
  at = t.then_reduce("down", {k.forward("down", k.down_in(), h)}, {at}, spec.linear_activation());
  return t.compute("residual", {k.elementwise("residual", traffic, 0.2, 0)}, {at});
}

// What a recomputation makes again. Where a product is made, what its input is gathered from is, too.
struct RecomputedParts {
  bool elementwise = false;
  bool qkv = false, attention = false;
  double projection = 0, up = 0;  // shares of the products
  bool down = false;
};

RecomputedParts recomputed_parts(const WorkloadSpec& spec) {
  switch (spec.training.recompute) {
    case Recompute::kNone:
      return {};
    case Recompute::kSelective:
      return {.attention = true};
    case Recompute::kElementwise:
      return {.elementwise = true};
    case Recompute::kHalfTheProducts:
      // Of q, k, v, output, gate, up, down in this order every second one.
      return {.elementwise = true, .projection = 1, .up = 0.5};
    case Recompute::kKeepQkv:
      return {.elementwise = true, .attention = true, .projection = 1, .up = 1};
    case Recompute::kKeepQkvAndOutput:
      return {.elementwise = true, .attention = true, .up = 1};
    case Recompute::kFull:
      break;
  }
  return {.elementwise = true,
          .qkv = true,
          .attention = true,
          .projection = 1,
          .up = 1,
          .down = !spec.software.recompute_stops_early};
}

Kernel share_of(Kernel kernel, double share) {
  kernel.repeats = share;
  return kernel;
}

int append_recomputation(TemplateBuilder& t, const LayerKernels& k, const WorkloadSpec& spec,
                         int at) {
  const RecomputedParts parts = recomputed_parts(spec);
  const auto h = spec.model.hidden;
  const ElementwiseTraffic& traffic = spec.software.forward;
  if (parts.elementwise) {
    at = t.compute("norm again", {k.elementwise("norm", traffic, 0.3, 0)}, {at});
  }
  if (parts.qkv) {
    at = t.gather_then(
        "qkv again", {k.forward("qkv", h, k.qkv_out()), k.elementwise("rope", traffic, 0.2, 0)}, {at},
        spec.linear_activation());
    at = t.context(CollectiveKind::kAllGather, k.keys_and_values(), {at});
  }
  std::vector<Kernel> attention;
  if (parts.attention) attention = k.attention_with_copies(AttentionPass::kForward);
  if (parts.projection > 0) {
    attention.push_back(share_of(k.forward("proj", k.proj_in(), h), parts.projection));
    at = t.then_reduce("attention, proj again", std::move(attention), {at},
                       spec.linear_activation());
  } else {
    at = t.compute("attention again", std::move(attention), {at});
  }
  if (!parts.elementwise) return at;
  at = t.compute("residual, norm again", {k.elementwise("residual, norm", traffic, 0.3, 0)}, {at});
  const Kernel activation = k.elementwise("activation", traffic, 0, 1);
  if (parts.up > 0) {
    at = t.gather_then("gate, up, activation again",
                       {share_of(k.forward("gate, up", h, k.up_out()), parts.up), activation}, {at},
                       spec.linear_activation());
  } else {
    at = t.compute("activation again", {activation}, {at});
  }
  if (!parts.down) return at;
  return t.then_reduce("down again", {k.forward("down", k.down_in(), h)}, {at},
                       spec.linear_activation());
}

// One block's backward pass: gradients of its row-parallel product, `middle` (attention or activation), its
// column-parallel product. The regathered input hides under the data gradient of the column product, and the
// reduce-scatter under its weight gradient, where the stack overlaps them.
int append_block_backward(TemplateBuilder& t, const LayerKernels& k, const WorkloadSpec& spec,
                          int at, BackwardPart part, std::string_view row, int64_t row_in,
                          std::vector<Kernel> middle, std::string_view column, int64_t column_out) {
  const auto h = spec.model.hidden;
  const bool input = part != BackwardPart::kWeight;
  const bool weight = part != BackwardPart::kInput;
  std::vector<Kernel> inner;
  if (input) inner.push_back(k.dgrad(std::string(row), row_in, h));
  if (weight) k.append_wgrad(inner, std::string(row), row_in, h);
  if (input) inner.insert(inner.end(), middle.begin(), middle.end());

  std::vector<Kernel> column_weight;
  if (weight) k.append_wgrad(column_weight, std::string(column), h, column_out);
  const std::string column_name(column);
  const bool split = spec.splits_sequence();
  const bool regather = split && weight && spec.software.tp_regather_in_backward;
  if (!input) {
    const int inputs =
        regather ? t.tensor(CollectiveKind::kAllGather, spec.linear_activation(), {at}) : at;
    at = t.compute(std::string(row) + " wgrad", inner, {at});
    return t.compute(column_name + " wgrad", column_weight, {at, inputs});
  }

  at = t.gather_then(std::string(row) + " backward", inner, {at}, spec.linear_activation());
  const bool overlap = spec.software.tp_backward_overlap;
  int gathered = at;
  if (regather) gathered = t.tensor(CollectiveKind::kAllGather, spec.linear_activation(), {at});
  const int data = t.compute(column_name + " dgrad", {k.dgrad(column_name, h, column_out)},
                             {overlap ? at : gathered});
  const auto reduce = split ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  const int reduced = t.tensor(reduce, spec.activation(), {data, gathered});
  const int weights = t.compute(column_name + " wgrad", column_weight,
                                overlap ? std::vector<int>{data, gathered} : std::vector<int>{reduced});
  return t.compute("gradient norm", {k.elementwise("norm", spec.software.backward, 0.3, 0)},
                   {reduced, weights});
}

int append_layer_backward(TemplateBuilder& t, const LayerKernels& k, const WorkloadSpec& spec,
                          BackwardPart part, bool recomputes) {
  const ElementwiseTraffic& traffic = spec.software.backward;
  const bool input = part != BackwardPart::kWeight;
  int at = kBefore;
  if (input && recomputes) at = append_recomputation(t, k, spec, at);
  at = t.compute("residual gradient",
                 input ? std::vector<Kernel>{k.elementwise("residual", traffic, 0.2, 0)}
                       : std::vector<Kernel>{},
                 {at});
  at = append_block_backward(t, k, spec, at, part, "down", k.down_in(),
                             {k.elementwise("activation", traffic, 0, 1)}, "gate, up", k.up_out());
  std::vector<Kernel> attention = k.attention_with_copies(AttentionPass::kBackward);
  attention.push_back(k.elementwise("rope", traffic, 0.2, 0));
  if (input) at = t.context(CollectiveKind::kAllGather, k.keys_and_values(), {at});
  at = append_block_backward(t, k, spec, at, part, "proj", k.proj_in(), attention, "qkv",
                             k.qkv_out());
  if (input) at = t.context(CollectiveKind::kReduceScatter, k.keys_and_values(), {at});
  return at;
}

}  // namespace

PassTemplates layer_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works,
                              bool recomputes) {
  const LayerKernels kernels(spec);
  PassTemplates out;
  TemplateBuilder forward(spec, works);
  append_layer_forward(forward, kernels, spec, kBefore);
  out.forward = forward.build();
  const auto backward = [&](BackwardPart part) {
    TemplateBuilder builder(spec, works);
    append_layer_backward(builder, kernels, spec, part, recomputes);
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
  forward.tensor(reduce, spec.activation(), {at});
  out.forward = forward.build();
  TemplateBuilder backward(spec, works);
  at = kBefore;
  if (spec.splits_sequence()) {
    at = backward.tensor(CollectiveKind::kAllGather, spec.activation(), {at});
  }
  // Gradients read in bf16 and added to fp32 rows.
  backward.compute("embedding gradient",
                   {k.stream("scatter", 5 * tensor, StreamClass::kFramework)}, {at});
  out.backward = backward.build();
  out.backward_input = out.backward;
  return out;
}

PassTemplates head_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works) {
  const LayerKernels k(spec);
  const auto h = spec.model.hidden;
  const int64_t vocab = spec.model.vocab / spec.plan.tp;
  const double logits = static_cast<double>(spec.tokens()) * static_cast<double>(vocab) *
                        spec.software.logit_bytes;
  PassTemplates out;
  TemplateBuilder forward(spec, works);
  int at = forward.compute("last norm", {k.elementwise("norm", spec.software.forward, 0.15, 0)},
                           {kBefore});
  at = forward.gather_then(
      "logits",
      {k.gemm("logits", k.tokens(), vocab, h, GemmPass::kForward, DataType::kBf16),
       k.stream("loss", logits / 2, spec.software.logit_stream)},
      {at}, spec.activation());
  // Maximum and sum of every token's logits over the vocabulary shards, fp32.
  forward.tensor(CollectiveKind::kAllReduce, Bytes(spec.tokens() * 2 * 4), {at});
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
      kernels.push_back(k.stream("logits accumulate",
                                 static_cast<double>(vocab * h) *
                                     spec.software.gradient_accumulation_bytes,
                                 spec.software.gradient_stream));
    }
    if (part == BackwardPart::kWeight) {
      t.compute("logits wgrad", kernels, {kBefore});
    } else {
      t.then_reduce("logits backward", kernels, {kBefore}, spec.activation());
    }
    return t.build();
  };
  out.backward = backward(BackwardPart::kBoth);
  out.backward_input = backward(BackwardPart::kInput);
  out.backward_weight = backward(BackwardPart::kWeight);
  return out;
}

}  // namespace herdsim

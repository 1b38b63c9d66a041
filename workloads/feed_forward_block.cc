#include "workloads/column_row_block.h"

namespace herdsim {
namespace {

std::string named(std::string_view name, std::string_view again) {
  return std::string(name) + std::string(again);
}

Kernel share_of(Kernel kernel, double share) {
  kernel.repeats = share;
  return kernel;
}

// The dense feed-forward layer, or all shared experts as one.
int append_mlp_forward(const BlockBuilder& b, int at, bool shared, const FeedForwardParts& parts,
                       std::string_view again) {
  const Product up = b.k.up(shared), down = b.k.down(shared);
  const Kernel activation =
      b.k.activation(b.spec.software.forward, static_cast<double>(b.k.tokens()), down.in);
  if (parts.up <= 0) return b.t.compute(named("activation", again), {activation}, {at});
  std::vector<Kernel> kernels = {share_of(b.k.forward(up, b.k.tokens()), parts.up)};
  b.k.append_forward_casts(kernels, up, b.k.tokens(), LayerKernels::Gathered::kYes);
  kernels.push_back(activation);
  const Bytes input = b.spec.gathered_activation() * b.k.gathers(b.k.feed_forward_readers());
  at = b.t.gather_then(named("gate, up, activation", again), input, std::move(kernels), {at});
  if (!parts.down) return at;
  kernels = {b.k.forward(down, b.k.tokens())};
  b.k.append_forward_casts(kernels, down, b.k.tokens(), LayerKernels::Gathered::kNo);
  return b.t.then_reduce(named("down", again), b.spec.scattered_activation(), std::move(kernels),
                         {at});
}

int append_mlp_backward(const BlockBuilder& b, int at, bool shared, BackwardPart part) {
  const Product down = b.k.down(shared);
  return append_block_backward(
      b, at, part,
      {.row = down,
       .middle = {b.k.activation(b.spec.software.backward, static_cast<double>(b.k.tokens()),
                                 down.in)},
       .columns = {b.k.up(shared)},
       .input = b.spec.model.hidden,
       .readers = b.k.feed_forward_readers()});
}

// Routed experts of one rank.
class ExpertSteps {
  enum Direction : uint8_t { kForward, kBackward };

 public:
  explicit ExpertSteps(const BlockBuilder& b)
      : b_(b),
        e_(expert_shares(b.spec)),
        hidden_(static_cast<double>(b.spec.model.hidden)),
        local_(static_cast<double>(b.spec.local_tokens())),
        sent_(static_cast<double>(e_.sent)),
        received_(static_cast<double>(e_.received)),
        up_{"expert gate, up", b.spec.model.hidden, (b.spec.model.mlp_matrices() - 1) * e_.width},
        down_{"expert down", e_.width, b.spec.model.hidden},
        router_{"router", b.spec.model.hidden, b.spec.model.experts} {}

  const ExpertShares& shares() const { return e_; }

  // Scores in bf16, softmax and the choice in fp32, a copy of each token for every expert that it
  // visits.
  int route(int at, std::string_view again) const {
    const double scores = local_ * static_cast<double>(b_.spec.model.experts);
    std::vector<Kernel> kernels = {b_.k.forward(router_, b_.spec.local_tokens()),
                                   stream("top-k", scores * kBytesAScore),
                                   stream("permute", 2 * hidden_ * (local_ + sent_))};
    append(kernels, small(b_.spec.software.expert_kernels_forward));
    return b_.t.compute(named("route, permute", again), std::move(kernels), {at});
  }
  int dispatch(int at) const { return b_.t.token_exchange(e_.dispatch, {at}); }
  int combine(int at) const { return b_.t.token_exchange(e_.combine, {at}); }

  // How many tokens go to each expert, told to every rank and to the host, which then launches the
  // rest of the layer. What ends the layer waits for `launched`, what follows the counts for
  // `counted`. A part that is made again without its end is launched with the backward pass.
  struct Counts {
    int counted, launched;
  };
  Counts count(int at, bool launches) const {
    const SoftwareStack& software = b_.spec.software;
    if (!b_.spec.host_counts_tokens()) return {at, at};
    constexpr int64_t kBytesACount = 8;
    at = b_.t.expert(CollectiveKind::kAllGather,
                     Bytes(b_.spec.plan.ep * b_.spec.model.experts * kBytesACount), {at});
    const int counted =
        b_.t.host("read counts", software.host_microseconds_for_expert_counts, {at});
    if (!launches) return {counted, counted};
    return {counted,
            b_.t.host("launch experts", software.host_microseconds_per_expert_layer, {counted})};
  }

  int forward(int at, const FeedForwardParts& parts, std::string_view again) const {
    // The activation alone needs no token from elsewhere.
    if (parts.up <= 0) {
      return b_.t.compute(named("activation", again), activation(kForward), {at});
    }
    at = gather(at);
    std::vector<Kernel> kernels = sort();
    Kernel up = b_.k.expert_forward(up_, e_);
    up.repeats *= parts.up;
    kernels.push_back(std::move(up));
    append(kernels, casts());
    append(kernels, activation(kForward));
    if (!parts.down) return b_.t.compute(named("experts", again), std::move(kernels), {at});
    append(kernels, casts());
    kernels.push_back(b_.k.expert_forward(down_, e_));
    append(kernels, bias(b_.spec.software.expert_bias_forward_bytes));
    append(kernels, sort());
    return reduce(b_.t.compute(named("experts", again), std::move(kernels), {at}));
  }
  int unpermute(std::vector<int> after) const {
    return b_.t.compute("unpermute", {stream("unpermute", 2 * hidden_ * (local_ + sent_))},
                        std::move(after));
  }

  int unpermute_backward(int at) const {
    return b_.t.compute("unpermute gradient",
                        {stream("unpermute", 2 * hidden_ * (local_ + 2 * sent_))}, {at});
  }
  int backward(int at, BackwardPart part) const {
    at = gather(at);
    std::vector<Kernel> kernels = sort();
    append(kernels, bias(b_.spec.software.expert_bias_backward_bytes));
    append(kernels, casts());
    kernels.push_back(b_.k.expert_dgrad(down_, e_));
    if (has_weight(part)) b_.k.append_expert_wgrad(kernels, down_, e_);
    append(kernels, activation(kBackward));
    append(kernels, casts());
    kernels.push_back(b_.k.expert_dgrad(up_, e_));
    if (has_weight(part)) b_.k.append_expert_wgrad(kernels, up_, e_);
    append(kernels, sort());
    return reduce(b_.t.compute("experts backward", std::move(kernels), {at}));
  }
  int route_backward(std::vector<int> after, BackwardPart part) const {
    const int64_t rows = b_.spec.local_tokens();
    std::vector<Kernel> kernels = {stream("permute", 2 * hidden_ * (local_ + sent_)),
                                   b_.k.dgrad(router_, rows)};
    append(kernels, small(b_.spec.software.expert_kernels_backward));
    if (has_weight(part)) b_.k.append_wgrad(kernels, router_, rows);
    // That of shared experts is in their own block.
    if (b_.spec.model.shared_experts == 0) {
      kernels.push_back(b_.k.elementwise("norm", b_.spec.software.backward, 0.3));
    }
    return b_.t.compute("permute, router, norm gradient", std::move(kernels), std::move(after));
  }
  int weights(int at) const {
    std::vector<Kernel> kernels;
    b_.k.append_expert_wgrad(kernels, down_, e_);
    b_.k.append_expert_wgrad(kernels, up_, e_);
    b_.k.append_wgrad(kernels, router_, b_.spec.local_tokens());
    return b_.t.compute("experts wgrad", std::move(kernels), {at});
  }

 private:
  // Read in bf16, softmax and top-k in fp32 (Megatron's router, fp32 by default): two reads, three
  // writes.
  static constexpr double kBytesAScore = 18;

  Kernel stream(std::string name, double moved) const {
    return b_.k.stream(std::move(name), moved, b_.spec.software.forward.stream);
  }
  // Kernels that take a launch and no more.
  std::vector<Kernel> small(double count) const {
    if (count <= 0) return {};
    Kernel kernel = b_.k.stream("small kernels", 1, b_.spec.software.forward.stream);
    kernel.repeats = count;
    return {kernel};
  }
  // Of one tensor that the experts' products read; the products' own times have one cast for all.
  std::vector<Kernel> casts() const {
    const bool fp8 = b_.spec.training.precision == DataType::kFp8;
    return small(fp8 ? b_.spec.software.expert_fp8_kernels * static_cast<double>(e_.local) : 0);
  }
  // With the clamps in front of it, where the model has them.
  std::vector<Kernel> activation(Direction direction) const {
    const SoftwareStack& software = b_.spec.software;
    const bool forward = direction == kForward;
    std::vector<Kernel> kernels = {
        b_.k.activation(forward ? software.forward : software.backward, received_, e_.width)};
    const double clamped =
        forward ? software.clamp_forward_ffn_bytes : software.clamp_backward_ffn_bytes;
    if (b_.spec.model.clamped_activation && clamped > 0) {
      kernels.push_back(b_.k.stream("clamp", clamped * received_ * static_cast<double>(e_.width),
                                    StreamClass::kFramework));
    }
    for (Kernel& kernel : kernels) kernel.uneven = Uneven::kExperts;
    return kernels;
  }
  // Of the last product, expert by expert.
  std::vector<Kernel> bias(double bytes) const {
    if (!b_.spec.model.expert_biases || bytes <= 0) return {};
    const auto experts = static_cast<double>(e_.local);
    Kernel kernel =
        b_.k.stream("bias", bytes * received_ * hidden_ / experts, StreamClass::kFramework);
    kernel.repeats = experts;
    kernel.uneven = Uneven::kExperts;
    return {kernel};
  }
  // From the order of arrival to the order of experts, and back.
  std::vector<Kernel> sort() const {
    if (e_.local == 1 || b_.spec.plan.ep * b_.spec.plan.expert_ranks() == 1) return {};
    return {stream("sort", 4 * hidden_ * received_)};
  }
  static void append(std::vector<Kernel>& kernels, std::vector<Kernel> more) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  int gather(int at) const {
    if (e_.tensor_gather == Bytes(0)) return at;
    return b_.t.tensor(CollectiveKind::kAllGather, e_.tensor_gather, {at});
  }
  int reduce(int at) const {
    if (e_.tensor_gather == Bytes(0)) return at;
    return b_.t.tensor(CollectiveKind::kReduceScatter, e_.tensor_gather, {at});
  }

  const BlockBuilder& b_;
  ExpertShares e_;
  double hidden_, local_, sent_, received_;
  Product up_, down_, router_;
};

}  // namespace

int append_dense_forward(const BlockBuilder& b, int at, const FeedForwardParts& parts,
                         std::string_view again) {
  return append_mlp_forward(b, at, false, parts, again);
}

int append_dense_backward(const BlockBuilder& b, int at, BackwardPart part) {
  return append_mlp_backward(b, at, false, part);
}

int append_shared_experts_forward(const BlockBuilder& b, int at, std::string_view again) {
  return append_mlp_forward(b, at, true, {}, again);
}

int append_experts_forward(const BlockBuilder& b, int at, const FeedForwardParts& parts,
                           std::string_view again) {
  const ExpertSteps steps(b);
  const bool shares = b.spec.model.shared_experts > 0;
  const bool overlap = b.spec.software.shared_expert_overlap;
  if (parts.up <= 0) return steps.forward(at, {.up = 0, .down = false}, again);
  int shared = at;
  if (shares && !overlap) shared = append_mlp_forward(b, at, true, parts, again);
  const ExpertSteps::Counts counts = steps.count(steps.route(shared, again), parts.down);
  at = counts.counted;
  const int sent = steps.dispatch(at);
  if (shares && overlap) shared = append_mlp_forward(b, at, true, parts, again);
  at = steps.forward(sent, parts, again);
  if (!parts.down) return at;
  return steps.unpermute({steps.combine(at), shared, counts.launched});
}

int append_experts_backward(const BlockBuilder& b, int at, BackwardPart part) {
  const ExpertSteps steps(b);
  const bool shares = b.spec.model.shared_experts > 0;
  if (!has_input(part)) {
    at = steps.weights(at);
    return shares ? append_mlp_backward(b, at, true, part) : at;
  }
  const bool overlap = b.spec.software.shared_expert_overlap;
  at = steps.unpermute_backward(at);
  int shared = at;
  if (shares && !overlap) shared = append_mlp_backward(b, at, true, part);
  const int sent = steps.combine(shared);
  if (shares && overlap) shared = append_mlp_backward(b, at, true, part);
  at = steps.combine(steps.backward(sent, part));
  return steps.route_backward({at, shared}, part);
}

}  // namespace herdsim

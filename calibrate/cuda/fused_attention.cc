#include "calibrate/cuda/fused_attention.h"

#include <cmath>
#include <limits>

namespace herdsim::cuda {
namespace {

using Sizes = CudnnGraph::Sizes;
using Tensor = CudnnGraph::Tensor;

constexpr cudnnDataType_t kBf16 = CUDNN_DATA_BFLOAT16, kFp32 = CUDNN_DATA_FLOAT;

// The last two sizes changed places, over the same memory.
Sizes turned(const Sizes& sizes) { return {sizes[0], sizes[1], sizes[3], sizes[2]}; }
Sizes turned_strides(const Sizes& sizes) { return turned(CudnnGraph::row_by_row(sizes)); }

size_t elements(const Sizes& s) { return static_cast<size_t>(s[0] * s[1] * s[2] * s[3]); }

class Writer {
 public:
  explicit Writer(const AttentionShape& s)
      : causal_(s.mask_fraction < 1),
        shared_(s.heads != s.kv_heads),
        q_({s.batch, s.heads, s.query_tokens, s.head_dim}),
        k_({s.batch, s.kv_heads, s.kv_tokens, s.head_dim}),
        v_({s.batch, s.kv_heads, s.kv_tokens, width(s)}),
        out_({s.batch, s.heads, s.query_tokens, width(s)}),
        scores_({s.batch, s.heads, s.query_tokens, s.kv_tokens}),
        row_({s.batch, s.heads, s.query_tokens, 1}),
        scale_(graph.constant(1 / std::sqrt(static_cast<float>(s.head_dim)))) {}

  CudnnGraph graph;
  std::vector<int64_t> ids;
  std::vector<size_t> bytes;
  std::vector<std::pair<int64_t, size_t>> between;  // ids and bytes

  void forward() {
    const Tensor q = keep(kBf16, q_), k = keep_turned(k_), v = keep(kBf16, v_);
    const Tensor out = keep(kBf16, out_), stats = keep(kFp32, row_);
    const Tensor s = masked(scores(q, k));
    const Tensor most = graph.passing(kFp32, row_), sum = graph.passing(kFp32, row_);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, s, most);
    const Tensor above = inner(CUDNN_POINTWISE_SUB, s, most);
    const Tensor power = inner(CUDNN_POINTWISE_EXP, above);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, power, sum);
    const Tensor log_sum = graph.passing(kFp32, row_);
    graph.pointwise(CUDNN_POINTWISE_LOG, sum, log_sum);
    graph.pointwise(CUDNN_POINTWISE_ADD, most, stats, {.b = log_sum});
    const Tensor p = graph.passing(kBf16, scores_);
    graph.pointwise(CUDNN_POINTWISE_DIV, power, p, {.b = sum});
    graph.matmul(p, v, out);
  }

  void backward() {
    const Tensor q = keep(kBf16, q_), k = keep_turned(k_), v = keep_turned(v_);
    const Tensor out = keep(kBf16, out_), stats = keep(kFp32, row_);
    const Tensor dout = keep(kBf16, out_), dq = keep(kBf16, q_);
    const Tensor dk = keep(kBf16, k_), dv = keep(kBf16, v_);
    // D; the product by one is part of the pattern.
    const Tensor products = graph.passing(kFp32, out_), row = graph.passing(kFp32, row_);
    graph.pointwise(CUDNN_POINTWISE_MUL, dout, products, {.b = out});
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, row);
    const Tensor d = keep_between(row_);
    graph.pointwise(CUDNN_POINTWISE_MUL, row, d, {.b = graph.constant(1)});
    const Tensor p =
        inner(CUDNN_POINTWISE_EXP, masked(inner(CUDNN_POINTWISE_SUB, scores(q, k), stats)));
    gradient_of_keys(p, dout, dv, {v_[0], q_[1], v_[2], v_[3]});
    const Tensor dp = graph.passing(kFp32, scores_);
    graph.matmul(dout, v, dp);
    const Tensor weighted = inner(CUDNN_POINTWISE_MUL, inner(CUDNN_POINTWISE_SUB, dp, d), p);
    const Tensor ds = graph.passing(kBf16, scores_);
    graph.pointwise(CUDNN_POINTWISE_MUL, weighted, ds, {.b = scale_});
    gradient_of_keys(ds, q, dk, {k_[0], q_[1], k_[2], k_[3]});
    const Tensor keys = graph.passing(kBf16, k_), sums = keep_between(q_);
    graph.reshape(k, keys);
    graph.matmul(ds, keys, sums);
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, sums, dq);
  }

 private:
  static int64_t width(const AttentionShape& s) {
    return s.value_head_dim > 0 ? s.value_head_dim : s.head_dim;
  }

  Tensor keep(cudnnDataType_t type, const Sizes& sizes, bool turn = false) {
    const Tensor t =
        turn ? graph.stored(type, turned(sizes), turned_strides(sizes)) : graph.stored(type, sizes);
    ids.push_back(t.id);
    bytes.push_back(elements(sizes) * (type == kFp32 ? 4 : 2));
    return t;
  }
  Tensor keep_turned(const Sizes& sizes) { return keep(kBf16, sizes, true); }
  Tensor keep_between(const Sizes& sizes) {
    const Tensor t = graph.stored(kFp32, sizes);
    between.emplace_back(t.id, elements(sizes) * 4);
    return t;
  }

  // f(x) or f(x, b) of the scores' shape, in fp32.
  Tensor inner(cudnnPointwiseMode_t mode, const Tensor& x, std::optional<Tensor> b = {}) {
    const Tensor y = graph.passing(kFp32, scores_);
    graph.pointwise(mode, x, y, {.b = b});
    return y;
  }

  Tensor scores(const Tensor& q, const Tensor& k) {
    const Tensor s = graph.passing(kFp32, scores_);
    graph.matmul(q, k, s);
    return inner(CUDNN_POINTWISE_MUL, s, scale_);
  }

  // Where the query's index is less than the key's: minus infinity.
  Tensor masked(const Tensor& s) {
    if (!causal_) return s;
    const Tensor query = graph.passing(CUDNN_DATA_INT32, scores_);
    const Tensor key = graph.passing(CUDNN_DATA_INT32, scores_);
    const Tensor seen = graph.passing(CUDNN_DATA_BOOLEAN, scores_);
    graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, s, query, {.axis = 2});
    graph.pointwise(CUDNN_POINTWISE_GEN_INDEX, s, key, {.axis = 3});
    graph.pointwise(CUDNN_POINTWISE_CMP_GE, query, seen,
                    {.b = key, .computed_in = CUDNN_DATA_BOOLEAN});
    const Tensor y = graph.passing(kFp32, scores_);
    graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, s, y,
                    {.b = graph.constant(-std::numeric_limits<float>::infinity()), .t = seen});
    return y;
  }

  // weights' by_query, of every query head; those that share a key head are summed.
  void gradient_of_keys(const Tensor& weights, const Tensor& by_query, const Tensor& gradient,
                        const Sizes& every_head) {
    const Tensor by_key = graph.passing(kBf16, turned(scores_), turned_strides(scores_));
    graph.reshape(weights, by_key);
    if (!shared_) return graph.matmul(by_key, by_query, gradient);
    const Tensor every = graph.passing(kBf16, every_head);
    graph.matmul(by_key, by_query, every);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, every, gradient);
  }

  bool causal_, shared_;
  Sizes q_, k_, v_, out_, scores_, row_;
  Tensor scale_;
};

}  // namespace

FusedAttention::FusedAttention(const CudnnTarget& target, const AttentionShape& shape) {
  Writer writer(shape);
  shape.pass == AttentionPass::kForward ? writer.forward() : writer.backward();
  ids_ = std::move(writer.ids);
  bytes_ = std::move(writer.bytes);
  for (const auto& [id, bytes] : writer.between)
    between_.push_back({id, (bytes + 255) / 256 * 256});
  plan_ = std::make_unique<CudnnPlan>(std::move(writer.graph), target);
}

size_t FusedAttention::workspace_bytes() const {
  size_t bytes = (plan_->workspace_bytes() + 255) / 256 * 256;
  for (const Part& part : between_) bytes += part.bytes;
  return bytes;
}

size_t FusedAttention::bind(const std::vector<void*>& pointers, void* workspace) {
  std::vector<std::pair<int64_t, void*>> by_id;
  for (size_t i = 0; i < ids_.size(); ++i) by_id.emplace_back(ids_[i], pointers[i]);
  auto* place = static_cast<char*>(workspace) + (plan_->workspace_bytes() + 255) / 256 * 256;
  for (const Part& part : between_) {
    by_id.emplace_back(part.id, place);
    place += part.bytes;
  }
  return plan_->bind(by_id, workspace);
}

}  // namespace herdsim::cuda

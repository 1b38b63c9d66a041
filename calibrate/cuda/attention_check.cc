#include "calibrate/cuda/attention_check.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "calibrate/cuda/attention_reference.h"
#include "calibrate/cuda/cuda_check.h"
#include "calibrate/cuda/fused_attention.h"

namespace herdsim::cuda {
namespace {

enum Tensor : size_t { kQ, kK, kV, kOut, kStats, kOutGradient, kQGradient, kKGradient, kVGradient };

// Reads rows of one head of a tensor (batch 0).
class Reader {
 public:
  Reader(const AttentionShape& s, const std::vector<void*>& tensors) : s_(s), tensors_(tensors) {}

  int64_t width(Tensor t) const {
    const bool value = t == kV || t == kOut || t == kOutGradient || t == kVGradient;
    return value && s_.value_head_dim > 0 ? s_.value_head_dim : s_.head_dim;
  }
  std::vector<float> rows(Tensor t, int64_t head, int64_t from, int64_t count) const {
    const bool of_keys = t == kK || t == kV || t == kKGradient || t == kVGradient;
    const int64_t tokens = of_keys ? s_.kv_tokens : s_.query_tokens;
    std::vector<uint16_t> raw(static_cast<size_t>(count * width(t)));
    copy(raw.data(), tensors_[t], (head * tokens + from) * width(t), raw.size());
    std::vector<float> values;
    values.reserve(raw.size());
    for (const uint16_t bits : raw) values.push_back(std::bit_cast<float>(uint32_t{bits} << 16));
    return values;
  }
  std::vector<float> stats(int64_t head, int64_t from, int64_t count) const {
    std::vector<float> values(static_cast<size_t>(count));
    copy(values.data(), tensors_[kStats], head * s_.query_tokens + from, values.size());
    return values;
  }

 private:
  template <class T>
  static void copy(T* to, const void* from, int64_t offset, size_t count) {
    check(cudaMemcpy(to, static_cast<const T*>(from) + offset, count * sizeof(T),
                     cudaMemcpyDeviceToHost));
  }
  const AttentionShape& s_;
  const std::vector<void*>& tensors_;
};

// P and dS are rounded to eight bits inside, so errors are a share of the row's largest element.
void expect_near(const std::vector<float>& got, const std::vector<double>& wanted,
                 const char* what) {
  double largest = 0;
  for (const double v : wanted) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(std::abs(got[i] - wanted[i]) <= 0.05 * largest + 1e-6))
      throw std::runtime_error(std::string("attention: ") + what +
                               " is something else than its reference");
  }
}

class Checker {
 public:
  Checker(const AttentionShape& s, const std::vector<void*>& tensors)
      : s_(s),
        read_(s, tensors),
        scale_(1 / std::sqrt(static_cast<double>(s.head_dim))),
        head_(s.heads - 1),
        kv_head_(s.kv_heads - 1) {}

  // Requires: a row that is there.
  void query(int64_t q) const {
    const int64_t seen = s_.mask_fraction < 1 ? q + 1 : s_.kv_tokens;
    const std::vector<float> keys = read_.rows(kK, kv_head_, 0, seen);
    const std::vector<float> values = read_.rows(kV, kv_head_, 0, seen);
    const std::vector<float> query = read_.rows(kQ, head_, q, 1);
    if (s_.pass == AttentionPass::kForward) {
      const AttentionRow row = attention_row(query, keys, values, seen, scale_);
      expect_near(read_.rows(kOut, head_, q, 1), row.out, "the output");
      expect_near(read_.stats(head_, q, 1), {row.stats}, "the sum of exponentials");
      return;
    }
    const std::vector<float> out = read_.rows(kOut, head_, q, 1);
    const std::vector<float> dout = read_.rows(kOutGradient, head_, q, 1);
    const AttentionGradientRow row{query, out, dout, read_.stats(head_, q, 1)[0]};
    expect_near(read_.rows(kQGradient, head_, q, 1),
                query_gradient(row, keys, values, seen, scale_), "the gradient of queries");
  }

  void key(int64_t k) const {
    const std::vector<float> key = read_.rows(kK, kv_head_, k, 1),
                             value = read_.rows(kV, kv_head_, k, 1);
    std::vector<double> dk(key.size()), dv(value.size());
    const int64_t from = s_.mask_fraction < 1 ? k : 0, count = s_.query_tokens - from;
    const auto depth = static_cast<size_t>(s_.head_dim), width = value.size();
    for (int64_t head = s_.heads - s_.heads / s_.kv_heads; head < s_.heads; ++head) {
      const std::vector<float> q = read_.rows(kQ, head, from, count),
                               out = read_.rows(kOut, head, from, count);
      const std::vector<float> dout = read_.rows(kOutGradient, head, from, count);
      const std::vector<float> stats = read_.stats(head, from, count);
      for (size_t i = 0; i < stats.size(); ++i) {
        add_key_gradient(
            {std::span(q).subspan(i * depth, depth), std::span(out).subspan(i * width, width),
             std::span(dout).subspan(i * width, width), stats[i]},
            key, value, scale_, dk, dv);
      }
    }
    expect_near(read_.rows(kKGradient, kv_head_, k, 1), dk, "the gradient of keys");
    expect_near(read_.rows(kVGradient, kv_head_, k, 1), dv, "the gradient of values");
  }

 private:
  const AttentionShape& s_;
  Reader read_;
  double scale_;
  int64_t head_, kv_head_;
};

}  // namespace

void check_attention(const AttentionShape& shape, const std::vector<void*>& tensors) {
  const Checker check_row(shape, tensors);
  check_row.query(std::min<int64_t>(1, shape.query_tokens - 1));
  check_row.query(shape.query_tokens / 3);
  if (shape.pass == AttentionPass::kForward) return;
  check_row.key(std::max<int64_t>(0, shape.kv_tokens - 2));
  check_row.key(shape.kv_tokens / 3);
}

}  // namespace herdsim::cuda

#include "calibrate/host/host_kernels.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "sim/base/rng.h"

namespace herdsim {
namespace {

constexpr float kRate = 1e-3F, kBeta1 = 0.9F, kBeta2 = 0.95F, kEpsilon = 1e-8F;

int blas_int(int64_t n) { return static_cast<int>(n); }

void softmax_rows(float* scores, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scores + r * columns;
    const float most = *std::max_element(row, row + columns);
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c] = std::exp(row[c] - most);
    for (int64_t c = 0; c < columns; ++c) row[c] /= sum;
  }
}

std::vector<float> random_floats(size_t count, uint64_t entity) {
  RngStream random(1, "calibrate/host check", entity);
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random.uniform() - 0.5);
  return values;
}

void expect_near(double value, double reference, double scale, const char* what) {
  if (std::abs(value - reference) > 1e-4 * scale) {
    throw std::runtime_error(std::string(what) + " computes something else than its reference");
  }
}

}  // namespace

void scale_stream(std::span<const float> x, std::span<float> y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] = 0.5F * x[i] + 0.25F;
}

void adam_step(const AdamState& s) {
  for (size_t i = 0; i < s.p.size(); ++i) {
    const float g = s.g[i];
    s.m[i] = kBeta1 * s.m[i] + (1 - kBeta1) * g;
    s.v[i] = kBeta2 * s.v[i] + (1 - kBeta2) * g * g;
    s.p[i] -= kRate * s.m[i] / (std::sqrt(s.v[i]) + kEpsilon);
  }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4"), optimize("O3")))
#endif
float burn_flops(double flops) {
  // Enough independent chains to fill the pipelines of two 16-lane units.
  constexpr size_t kLanes = 256;
  float sums[kLanes];
  for (size_t i = 0; i < kLanes; ++i) sums[i] = static_cast<float>(i) * 1e-3F;
  const auto steps = static_cast<int64_t>(flops / (2.0 * kLanes));
  for (int64_t s = 0; s < steps; ++s) {
    for (size_t i = 0; i < kLanes; ++i) sums[i] = __builtin_fmaf(sums[i], 0.999F, 1e-3F);
  }
  float sum = 0;
  for (const float v : sums) sum += v;
  return sum;
}

void product(const GemmShape& s, const float* a, const float* b, float* c) {
  const int m = blas_int(s.m), n = blas_int(s.n), k = blas_int(s.k);
  switch (s.pass) {
    case GemmPass::kForward:  // activations [m, k] times weights [n, k]
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, a, k, b, k, 0, c, n);
      return;
    case GemmPass::kDgrad:
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, a, k, b, n, 0, c, n);
      return;
    case GemmPass::kWgrad:  // adds to what earlier micro-batches left
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, a, m, b, n, 1, c, n);
      return;
  }
}

void attention(const AttentionShape& s, const float* q, const float* k, const float* v,
               const float* dout, float* out, float* dq, float* dk, float* dv, float* scratch) {
  const int rows = blas_int(s.query_tokens), keys = blas_int(s.kv_tokens), d = blas_int(s.head_dim);
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  const int64_t group = std::max<int64_t>(1, s.heads / std::max<int64_t>(1, s.kv_heads));
  float* scores = scratch;
  float* gradient = scratch + s.query_tokens * s.kv_tokens;
  for (int64_t h = 0; h < s.batch * s.heads; ++h) {
    const int64_t at = h * s.query_tokens * s.head_dim,
                  kv_at = h / group * s.kv_tokens * s.head_dim;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, keys, d, scale, q + at, d, k + kv_at,
                d, 0, scores, keys);
    softmax_rows(scores, s.query_tokens, s.kv_tokens);
    if (s.pass == AttentionPass::kForward) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, d, keys, 1, scores, keys,
                  v + kv_at, d, 0, out + at, d);
      continue;
    }
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, keys, d, rows, 1, scores, keys, dout + at,
                d, 1, dv + kv_at, d);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, keys, d, 1, dout + at, d, v + kv_at,
                d, 0, gradient, keys);
    for (int64_t r = 0; r < s.query_tokens; ++r) {
      float* p = scores + r * s.kv_tokens;
      float* g = gradient + r * s.kv_tokens;
      float dot = 0;
      for (int64_t c = 0; c < s.kv_tokens; ++c) dot += p[c] * g[c];
      for (int64_t c = 0; c < s.kv_tokens; ++c) g[c] = p[c] * (g[c] - dot);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, d, keys, scale, gradient, keys,
                k + kv_at, d, 0, dq + at, d);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, keys, d, rows, scale, gradient, keys,
                q + at, d, 1, dk + kv_at, d);
  }
}

void check_product(GemmPass pass) {
  const GemmShape s{.m = 17, .n = 9, .k = 23, .pass = pass};
  const std::vector<float> a = random_floats(static_cast<size_t>(s.m * s.k), 1);
  const std::vector<float> b = random_floats(static_cast<size_t>(s.n * s.k), 2);
  const std::vector<float> before = random_floats(static_cast<size_t>(s.m * s.n), 3);
  std::vector<float> c = before;
  product(s, a.data(), b.data(), c.data());
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = pass == GemmPass::kWgrad ? before[static_cast<size_t>(i * s.n + j)] : 0;
      for (int64_t l = 0; l < s.k; ++l) {
        const int64_t from_a = pass == GemmPass::kWgrad ? l * s.m + i : i * s.k + l;
        const int64_t from_b = pass == GemmPass::kForward ? j * s.k + l : l * s.n + j;
        sum += static_cast<double>(a[static_cast<size_t>(from_a)]) * b[static_cast<size_t>(from_b)];
      }
      expect_near(c[static_cast<size_t>(i * s.n + j)], sum, 1, "a product");
    }
  }
}

void check_attention(AttentionPass pass) {
  const AttentionShape s{.batch = 1,
                         .query_tokens = 7,
                         .kv_tokens = 7,
                         .heads = 2,
                         .kv_heads = 1,
                         .head_dim = 4,
                         .mask_fraction = 1,
                         .pass = AttentionPass::kForward};
  std::vector<float> q = random_floats(56, 4);
  const std::vector<float> k = random_floats(28, 5), v = random_floats(28, 6),
                           dout = random_floats(56, 7);
  std::vector<float> out(56), dq(56), dk(28), dv(28), scratch(2 * 49);
  const auto forward = [&](const std::vector<float>& queries, std::vector<double>& result) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t r = 0; r < 7; ++r) {
        double weights[7], sum = 0;
        for (int64_t c = 0; c < 7; ++c) {
          double score = 0;
          for (int64_t i = 0; i < 4; ++i) {
            score += static_cast<double>(queries[static_cast<size_t>((h * 7 + r) * 4 + i)]) *
                     k[static_cast<size_t>(c * 4 + i)];
          }
          sum += weights[c] = std::exp(score / 2);
        }
        for (int64_t i = 0; i < 4; ++i) {
          double value = 0;
          for (int64_t c = 0; c < 7; ++c)
            value += weights[c] / sum * v[static_cast<size_t>(c * 4 + i)];
          result[static_cast<size_t>((h * 7 + r) * 4 + i)] = value;
        }
      }
    }
  };
  std::vector<double> reference(56), moved(56);
  forward(q, reference);
  attention(s, q.data(), k.data(), v.data(), nullptr, out.data(), nullptr, nullptr, nullptr,
            scratch.data());
  for (size_t i = 0; i < 56; ++i) expect_near(out[i], reference[i], 1, "attention");
  if (pass == AttentionPass::kForward) return;
  AttentionShape backward = s;
  backward.pass = AttentionPass::kBackward;
  attention(backward, q.data(), k.data(), v.data(), dout.data(), out.data(), dq.data(), dk.data(),
            dv.data(), scratch.data());
  // The gradient of one query channel, by a difference.
  constexpr double kStep = 1e-3;
  for (const size_t i : {0UL, 13UL, 55UL}) {
    std::vector<float> other = q;
    other[i] += static_cast<float>(kStep);
    forward(other, moved);
    double slope = 0;
    for (size_t j = 0; j < 56; ++j) slope += (moved[j] - reference[j]) * dout[j] / kStep;
    expect_near(dq[i], slope, 10, "attention backward");
  }
}

void check_streams() {
  const std::vector<float> x = random_floats(100, 8), g = random_floats(100, 9);
  std::vector<float> y(100), p = x, m(100, 0.1F), v(100, 0.2F);
  scale_stream(x, y);
  adam_step({p, m, v, g});
  for (size_t i = 0; i < 100; ++i) {
    expect_near(y[i], 0.5 * x[i] + 0.25, 1, "a stream");
    const double first = 0.9 * 0.1 + 0.1 * g[i], second = 0.95 * 0.2 + 0.05 * g[i] * g[i];
    expect_near(p[i], x[i] - 1e-3 * first / (std::sqrt(second) + 1e-8), 1, "Adam");
  }
}

}  // namespace herdsim

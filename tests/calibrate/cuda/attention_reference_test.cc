// The reference of fused attention: its gradients are those of its values.
#include "calibrate/cuda/attention_reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/base/rng.h"

namespace herdsim {
namespace {

constexpr size_t kTokens = 5, kDepth = 4, kWidth = 3;
constexpr double kScale = 0.5;

struct Head {
  std::vector<float> q, k, v, dout;
};

std::vector<float> noise(RngStream& random, size_t count) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(random.uniform() * 2 - 1);
  return values;
}

Head random_head() {
  RngStream random(7, "tests/attention_reference", 0);
  return {noise(random, kTokens * kDepth), noise(random, kTokens * kDepth),
          noise(random, kTokens * kWidth), noise(random, kTokens * kWidth)};
}

std::span<const float> rows(const std::vector<float>& of, size_t from, size_t count, size_t width) {
  return std::span<const float>(of).subspan(from * width, count * width);
}

AttentionRow causal_row(const Head& h, size_t query) {
  return attention_row(rows(h.q, query, 1, kDepth), rows(h.k, 0, query + 1, kDepth),
                       rows(h.v, 0, query + 1, kWidth), static_cast<int64_t>(query + 1), kScale);
}

// The sum of dout out over all queries of a causal head: its gradients are dq, dk and dv.
double loss(const Head& h) {
  double sum = 0;
  for (size_t i = 0; i < kTokens; ++i) {
    const AttentionRow row = causal_row(h, i);
    for (size_t c = 0; c < kWidth; ++c) sum += h.dout[i * kWidth + c] * row.out[c];
  }
  return sum;
}

double slope(Head h, std::vector<float> Head::*part, size_t index) {
  constexpr float kStep = 1.0F / 1024;
  const float at = (h.*part)[index];
  (h.*part)[index] = at + kStep;
  const double above = loss(h);
  (h.*part)[index] = at - kStep;
  return (above - loss(h)) / (2.0 * kStep);
}

TEST(AttentionReference, a_query_that_sees_one_key_gets_its_value) {
  const Head h = random_head();
  const AttentionRow row = causal_row(h, 0);
  for (size_t c = 0; c < kWidth; ++c) EXPECT_NEAR(row.out[c], h.v[c], 1e-12);
}

TEST(AttentionReference, equal_scores_average_and_their_number_is_in_the_stats) {
  const std::vector<float> query(kDepth), keys(kTokens * kDepth);
  const Head h = random_head();
  const AttentionRow row = attention_row(query, keys, h.v, kTokens, kScale);
  double mean = 0;
  for (size_t j = 0; j < kTokens; ++j) mean += h.v[j * kWidth] / kTokens;
  EXPECT_NEAR(row.out[0], mean, 1e-7);
  EXPECT_NEAR(row.stats, std::log(kTokens), 1e-12);
}

TEST(AttentionReference, gradients_are_the_slopes_of_the_loss) {
  const Head h = random_head();
  std::vector<std::vector<float>> outs;
  std::vector<AttentionGradientRow> gradient_rows;
  for (size_t i = 0; i < kTokens; ++i) {
    const AttentionRow row = causal_row(h, i);
    outs.emplace_back(row.out.begin(), row.out.end());
    gradient_rows.push_back({.query = rows(h.q, i, 1, kDepth),
                             .out_gradient = rows(h.dout, i, 1, kWidth),
                             .stats = row.stats});
  }
  for (size_t i = 0; i < kTokens; ++i) gradient_rows[i].out = outs[i];
  // The steps and the values in single precision leave errors of some 1e-4.
  constexpr double kNear = 1e-3;
  for (size_t i = 0; i < kTokens; ++i) {
    const std::vector<double> dq =
        query_gradient(gradient_rows[i], rows(h.k, 0, i + 1, kDepth), rows(h.v, 0, i + 1, kWidth),
                       static_cast<int64_t>(i + 1), kScale);
    for (size_t c = 0; c < kDepth; ++c)
      EXPECT_NEAR(dq[c], slope(h, &Head::q, i * kDepth + c), kNear);
  }
  for (size_t j = 0; j < kTokens; ++j) {
    std::vector<double> dk(kDepth), dv(kWidth);
    for (size_t i = j; i < kTokens; ++i)
      add_key_gradient(gradient_rows[i], rows(h.k, j, 1, kDepth), rows(h.v, j, 1, kWidth), kScale,
                       dk, dv);
    for (size_t c = 0; c < kDepth; ++c)
      EXPECT_NEAR(dk[c], slope(h, &Head::k, j * kDepth + c), kNear);
    for (size_t c = 0; c < kWidth; ++c)
      EXPECT_NEAR(dv[c], slope(h, &Head::v, j * kWidth + c), kNear);
  }
}

}  // namespace
}  // namespace herdsim

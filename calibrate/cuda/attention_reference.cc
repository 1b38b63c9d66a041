#include "calibrate/cuda/attention_reference.h"

#include <algorithm>
#include <cmath>

namespace herdsim {
namespace {

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// What a key with this value gets of the row: its probability and the gradient of its score.
struct Share {
  double probability, score_gradient;
};
Share share_of(const AttentionGradientRow& row, std::span<const float> key,
               std::span<const float> value, double scale) {
  const double probability = std::exp(scale * dot(row.query, key) - row.stats);
  const double whole = dot(row.out_gradient, row.out);
  return {probability, probability * (dot(row.out_gradient, value) - whole) * scale};
}

}  // namespace

AttentionRow attention_row(std::span<const float> query, std::span<const float> keys,
                           std::span<const float> values, int64_t seen, double scale) {
  const auto count = static_cast<size_t>(seen);
  const size_t width = values.size() / count;
  std::vector<double> scores(count);
  for (size_t j = 0; j < count; ++j)
    scores[j] = scale * dot(query, keys.subspan(j * query.size(), query.size()));
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  AttentionRow row{.out = std::vector<double>(width)};
  for (size_t j = 0; j < count; ++j) {
    const double weight = std::exp(scores[j] - most);
    sum += weight;
    for (size_t i = 0; i < width; ++i) row.out[i] += weight * values[j * width + i];
  }
  for (double& v : row.out) v /= sum;
  row.stats = most + std::log(sum);
  return row;
}

std::vector<double> query_gradient(const AttentionGradientRow& row, std::span<const float> keys,
                                   std::span<const float> values, int64_t seen, double scale) {
  const size_t depth = row.query.size(), width = row.out.size();
  std::vector<double> gradient(depth);
  for (size_t j = 0; j < static_cast<size_t>(seen); ++j) {
    const auto key = keys.subspan(j * depth, depth);
    const Share share = share_of(row, key, values.subspan(j * width, width), scale);
    for (size_t i = 0; i < depth; ++i) gradient[i] += share.score_gradient * key[i];
  }
  return gradient;
}

void add_key_gradient(const AttentionGradientRow& row, std::span<const float> key,
                      std::span<const float> value, double scale, std::vector<double>& key_gradient,
                      std::vector<double>& value_gradient) {
  const Share share = share_of(row, key, value, scale);
  for (size_t i = 0; i < key.size(); ++i) key_gradient[i] += share.score_gradient * row.query[i];
  for (size_t i = 0; i < value.size(); ++i)
    value_gradient[i] += share.probability * row.out_gradient[i];
}

}  // namespace herdsim

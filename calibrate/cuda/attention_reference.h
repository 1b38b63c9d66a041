// Attention in double precision, a row at a time: what a fused kernel is checked against. Knows no
// device.
//
// Rows are of one head: `keys` has `seen` rows of the query's width, `values` as many of its own.
// What the mask hides is not given. The formulas are those of fused_attention.h; `out` and `stats`
// may be anything, as they are inputs of the backward pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace herdsim {

struct AttentionRow {
  std::vector<double> out;
  double stats = 0;  // log of the sum of the scores' exponentials
};

struct AttentionGradientRow {
  std::span<const float> query, out, out_gradient;
  double stats = 0;
};

// Of one query. Requires: at least one key.
AttentionRow attention_row(std::span<const float> query, std::span<const float> keys,
                           std::span<const float> values, int64_t seen, double scale);

// The gradient of that query.
std::vector<double> query_gradient(const AttentionGradientRow& row, std::span<const float> keys,
                                   std::span<const float> values, int64_t seen, double scale);

// What one query that sees the key adds to the gradients of it and of its value.
void add_key_gradient(const AttentionGradientRow& row, std::span<const float> key,
                      std::span<const float> value, double scale, std::vector<double>& key_gradient,
                      std::vector<double>& value_gradient);

}  // namespace herdsim

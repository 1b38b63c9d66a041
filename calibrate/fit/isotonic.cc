#include "calibrate/fit/isotonic.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// Projections converge geometrically; what is left after these rounds is below a part in a million
// and is cut off.
constexpr int kRounds = 200;
constexpr double kConverged = 1e-9;

// Projects every line of the grid along one axis.
void project_axis(const std::array<size_t, 3>& sizes, size_t axis, std::vector<double>& values,
                  const std::vector<double>& weights) {
  const std::array<size_t, 3> strides = {sizes[1] * sizes[2], sizes[2], 1};
  std::vector<double> line(sizes[axis]), line_weights(sizes[axis]);
  for (size_t start = 0; start < values.size(); ++start) {
    // A line starts where its own coordinate is zero.
    if (start / strides[axis] % sizes[axis] != 0) continue;
    for (size_t i = 0; i < sizes[axis]; ++i) {
      line[i] = values[start + i * strides[axis]];
      line_weights[i] = weights[start + i * strides[axis]];
    }
    make_nondecreasing(line, line_weights);
    for (size_t i = 0; i < sizes[axis]; ++i) values[start + i * strides[axis]] = line[i];
  }
}

}  // namespace

void make_nondecreasing(std::vector<double>& values, const std::vector<double>& weights) {
  HERDSIM_CHECK(values.size() == weights.size());
  struct Block {
    double mean, weight;
    size_t count;
  };
  std::vector<Block> blocks;
  for (size_t i = 0; i < values.size(); ++i) {
    blocks.push_back({values[i], weights[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean > blocks.back().mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& pooled = blocks.back();
      const double weight = pooled.weight + last.weight;
      pooled = {(pooled.mean * pooled.weight + last.mean * last.weight) / weight, weight,
                pooled.count + last.count};
    }
  }
  size_t i = 0;
  for (const Block& block : blocks) {
    for (size_t j = 0; j < block.count; ++j) values[i++] = block.mean;
  }
}

void make_grid_nondecreasing(const std::array<size_t, 3>& sizes, std::vector<double>& values,
                             const std::vector<double>& weights) {
  HERDSIM_CHECK(values.size() == sizes[0] * sizes[1] * sizes[2]);
  std::array<std::vector<double>, 3> correction;
  for (auto& c : correction) c.assign(values.size(), 0.0);
  for (int round = 0; round < kRounds; ++round) {
    double moved = 0;
    for (size_t axis = 0; axis < 3; ++axis) {
      std::vector<double> before = values;
      for (size_t i = 0; i < values.size(); ++i) before[i] += correction[axis][i];
      std::vector<double> after = before;
      project_axis(sizes, axis, after, weights);
      for (size_t i = 0; i < values.size(); ++i) {
        correction[axis][i] = before[i] - after[i];
        moved = std::max(moved, std::abs(after[i] - values[i]));
      }
      values = std::move(after);
    }
    if (moved < kConverged) break;
  }
  // Running maxima remove what the last round left.
  const size_t plane = sizes[1] * sizes[2];
  for (size_t i = 0; i < values.size(); ++i) {
    if (i >= plane) values[i] = std::max(values[i], values[i - plane]);
    if (i % plane >= sizes[2]) values[i] = std::max(values[i], values[i - sizes[2]]);
    if (i % sizes[2] > 0) values[i] = std::max(values[i], values[i - 1]);
  }
}

}  // namespace herdsim

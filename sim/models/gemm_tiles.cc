#include "sim/models/gemm_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr int64_t kDepthStep = 32;
constexpr int64_t kLeastSlice = 128;

int64_t parts(int64_t size, int64_t part) { return (size + part - 1) / part; }

}  // namespace

double tile_factor(const GemmTiles& tiles, const GemmShape& shape, int64_t sms) {
  HERDSIM_CHECK(!tiles.empty() && !tiles.slices.empty() && sms > 0);
  const double m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k);
  double least = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : tiles.tiles) {
    const int64_t count = parts(shape.m, tile.rows) * parts(shape.n, tile.columns);
    for (const int64_t slices : tiles.slices) {
      int64_t depth = parts(parts(shape.k, slices), kDepthStep) * kDepthStep;
      if (slices > 1) depth = std::max(depth, kLeastSlice);
      double time = static_cast<double>(parts(count * slices, sms)) *
                    (tile.start_nanoseconds + static_cast<double>(depth) * tile.nanoseconds_per_k);
      if (slices > 1) {
        time += tiles.slicing_nanoseconds +
                8e9 * static_cast<double>(slices) * m * n / tiles.partial_sum_bytes_per_second;
      }
      least = std::min(least, time);
    }
  }
  const double operand = static_cast<double>(bytes_per_element(shape.dtype));
  const double memory = 1e9 * (operand * (m * k + n * k) + std::max(operand, 2.0) * m * n) /
                        tiles.memory_bytes_per_second;
  return std::pow(1 + std::max(least, memory) / tiles.scale_nanoseconds, tiles.exponent);
}

}  // namespace herdsim

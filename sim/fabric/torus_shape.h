// A grid of chips of one to three dimensions, each joined to its neighbours; with wrap-around a
// dimension of three or more is a ring. Chips are numbered with the first coordinate running
// fastest.
//
//   const TorusShape cube{.extents = {4, 4, 4}, .dimensions = 3};
//   cube.at(21)             // {1, 1, 1}
//   cube.distance(0, 63)    // 3: one hop back around each ring
#pragma once

#include <array>
#include <cstdint>

namespace herdsim {

struct TorusShape {
  static constexpr int64_t kMostDimensions = 3;
  using Coordinates = std::array<int64_t, kMostDimensions>;

  Coordinates extents = {1, 1, 1};
  int64_t dimensions = 0;
  bool wraps = true;

  int64_t chips() const { return extents[0] * extents[1] * extents[2]; }
  // The wrap-around cable of two chips would be the one they have.
  bool is_ring(size_t dimension) const { return wraps && extents[dimension] > 2; }
  // Cables of one dimension, over the whole grid.
  int64_t cables(size_t dimension) const {
    const int64_t n = extents[dimension];
    return chips() / n * (is_ring(dimension) ? n : n - 1);
  }
  Coordinates at(int64_t chip) const {
    return {chip % extents[0], chip / extents[0] % extents[1], chip / extents[0] / extents[1]};
  }
  int64_t chip(const Coordinates& c) const {
    return c[0] + extents[0] * (c[1] + extents[1] * c[2]);
  }
  // Links along one dimension from one coordinate to another: forwards if positive. Half way around
  // a ring of even extent, odd coordinates go forwards and even ones backwards.
  int64_t steps(size_t dimension, int64_t from, int64_t to) const {
    const int64_t n = extents[dimension];
    int64_t forward = to - from;
    if (!is_ring(dimension)) return forward;
    if (forward < 0) forward += n;
    if (2 * forward == n) return from % 2 == 1 ? forward : -forward;
    return 2 * forward < n ? forward : forward - n;
  }
  // Links between two chips.
  int64_t distance(int64_t a, int64_t b) const {
    const Coordinates from = at(a), to = at(b);
    int64_t sum = 0;
    for (size_t d = 0; d < kMostDimensions; ++d) {
      const int64_t along = steps(d, from[d], to[d]);
      sum += along < 0 ? -along : along;
    }
    return sum;
  }

  friend bool operator==(const TorusShape&, const TorusShape&) = default;
};

}  // namespace herdsim

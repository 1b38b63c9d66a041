// The ranks of a job as a grid: tensor, context, pipeline and data parallel coordinates, innermost first.
//
//   rank = ((dp * PP + pp) * CP + cp) * TP + tp
//
// A communicator spans a set of axes: its groups are the ranks that agree on every other coordinate, in rank order.
// Nothing is stored per rank, so a grid of a million ranks costs nothing.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/ids.h"

namespace herdsim {

enum class Axis : uint8_t { kTp, kCp, kPp, kDp };
constexpr size_t kAxes = 4;

// What a collective runs over. Expert parallelism reuses data-parallel ranks and joins as a row when it is modelled.
enum class Communicator : uint8_t {
  kTensor,    // {tp}
  kContext,   // {cp}
  kGradient,  // {cp, dp}: ranks that hold the same parameters
  kWorld,     // every rank
};
constexpr size_t kCommunicators = 4;

class RankGrid {
 public:
  RankGrid() = default;
  // Requires: every size >= 1.
  RankGrid(int64_t tp, int64_t cp, int64_t pp, int64_t dp);

  size_t ranks() const { return strides_[kAxes]; }
  size_t size(Axis axis) const { return sizes_[static_cast<size_t>(axis)]; }
  size_t coordinate(RankId rank, Axis axis) const {
    const auto a = static_cast<size_t>(axis);
    return rank.index() / strides_[a] % sizes_[a];
  }
  // The rank with `axis` set to `value` and every other coordinate of `rank`.
  RankId with(RankId rank, Axis axis, size_t value) const {
    const auto a = static_cast<size_t>(axis);
    return RankId(rank.index() + (value - coordinate(rank, axis)) * strides_[a]);
  }

  size_t group_size(Communicator c) const { return layout(c).size; }
  size_t group_count(Communicator c) const { return ranks() / group_size(c); }
  CommGroupId group_of(RankId rank, Communicator c) const;
  // The `position`-th member in rank order. Requires: position < group_size(c).
  RankId member(CommGroupId group, Communicator c, size_t position) const;

 private:
  // The axes of a communicator, as strides and sizes of members and of what is left.
  struct Layout {
    size_t size = 1;
    std::array<bool, kAxes> spans{};
  };
  const Layout& layout(Communicator c) const { return layouts_[static_cast<size_t>(c)]; }

  std::array<size_t, kAxes> sizes_{1, 1, 1, 1};
  std::array<size_t, kAxes + 1> strides_{1, 1, 1, 1, 1};
  std::array<Layout, kCommunicators> layouts_{};
};

}  // namespace herdsim

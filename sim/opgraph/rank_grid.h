// The ranks of a job as a grid: tensor, context, pipeline and data parallel coordinates, in any
// order of nesting.
//
//   rank = ((dp * PP + pp) * CP + cp) * TP + tp    in Llama 3's order [TP, CP, PP, DP], innermost
//   first
//
// Data-parallel ranks come in blocks of `inner` consecutive ones: those that share out the experts,
// or the state where others hold replicas of it (HSDP).
//
// A communicator spans a set of axes: its groups are the ranks that agree on every other
// coordinate, in rank order. Nothing is stored per rank, so a grid of a million ranks costs
// nothing.
//
//   RankGrid({.tp = 8, .pp = 16, .dp = 128}).member(group, Communicator::kGradient, 5)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/ids.h"

namespace herdsim {

enum class Axis : uint8_t { kTp, kCp, kPp, kDp };
constexpr size_t kAxes = 4;

// What a collective runs over.
enum class Communicator : uint8_t {
  kTensor,    // {tp}
  kContext,   // {cp}
  kGradient,  // {cp, dp}: ranks that hold the same parameters
  kShard,     // {cp, dp within a block}: that share out the state of one replica
  kReplica,   // {dp across blocks}: that hold the same share of it
  kExpert,    // {dp within a block}, with {tp} where experts span it: that share out the experts
  kExpertGradient,  // {cp, dp across blocks}: that hold the same experts
  kEnds,            // first and last stage: the two copies of a tied embedding
  kWorld,           // every rank
};
constexpr size_t kCommunicators = 9;

struct GridShape {
  int64_t tp = 1, cp = 1, pp = 1, dp = 1;
  int64_t inner = 1;  // consecutive data-parallel ranks of a block; divides dp
  bool experts_span_tp = false;
  // Stage s holds what stage pp - 1 - s holds, so the two reduce their gradients together.
  bool mirrored = false;
  std::array<Axis, kAxes> order{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp};  // innermost first
};

class RankGrid {
 public:
  RankGrid() : RankGrid(GridShape{}) {}
  // Requires: every size >= 1, inner divides dp, each axis once in the order, mirrored only with an
  // even pp.
  explicit RankGrid(const GridShape& shape);

  size_t ranks() const { return ranks_; }
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
  size_t group_count(Communicator c) const { return layout(c).count; }
  // Of kEnds also for ranks of the stages between, which are no members.
  CommGroupId group_of(RankId rank, Communicator c) const;
  // The `position`-th member in rank order. Requires: position < group_size(c).
  RankId member(CommGroupId group, Communicator c, size_t position) const;
  // All of them, in place of what was in `out`.
  void list_members(CommGroupId group, Communicator c, std::vector<RankId>& out) const;

  // Aligned blocks of so many consecutive ranks, at most `most` and dividing it, differ in one
  // coordinate, which is no stage: a group holds the whole of a block or one rank of each, and
  // groups of the ranks of a block have consecutive numbers.
  size_t block_of_one_axis(size_t most) const;
  // Requires: such blocks of more than one rank.
  bool holds_whole_blocks(Communicator c) const;

  friend bool operator==(const RankGrid&, const RankGrid&) = default;

 private:
  // Digits of a rank, each a coordinate or a part of one.
  enum Digit : uint8_t { kTpDigit, kCpDigit, kPpDigit, kInnerDigit, kOuterDigit };
  static constexpr size_t kDigits = 5;
  // A spanned digit of a group runs over its values; a paired one over s and size - 1 - s; the ends
  // over 0 and size - 1.
  enum class Span : uint8_t { kFixed, kAll, kPaired, kEnds };
  struct Layout {
    std::array<Span, kDigits> spans{};
    size_t size = 1, count = 1;
    friend bool operator==(const Layout&, const Layout&) = default;
  };
  const Layout& layout(Communicator c) const { return layouts_[static_cast<size_t>(c)]; }
  // The one that changes from a rank to the next. Of a single rank: any.
  Digit fastest_digit() const;
  void place_digits(const GridShape& shape);
  void lay_out_groups(const GridShape& shape);

  size_t ranks_ = 1;
  std::array<size_t, kAxes> sizes_{}, strides_{};
  std::array<size_t, kDigits> digit_sizes_{}, digit_strides_{};
  std::array<Digit, kDigits> nesting_{};  // innermost first
  std::array<Layout, kCommunicators> layouts_{};
};

}  // namespace herdsim

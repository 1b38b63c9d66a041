#include "sim/opgraph/rank_grid.h"

#include "sim/base/check.h"

namespace herdsim {

RankGrid::RankGrid(int64_t tp, int64_t cp, int64_t pp, int64_t dp) {
  HERDSIM_CHECK(tp >= 1 && cp >= 1 && pp >= 1 && dp >= 1) << "grid of no ranks";
  sizes_ = {static_cast<size_t>(tp), static_cast<size_t>(cp), static_cast<size_t>(pp),
            static_cast<size_t>(dp)};
  for (size_t a = 0; a < kAxes; ++a) strides_[a + 1] = strides_[a] * sizes_[a];
  constexpr std::array<std::array<bool, kAxes>, kCommunicators> kSpans = {{
      {true, false, false, false},  // kTensor
      {false, true, false, false},  // kContext
      {false, true, false, true},   // kGradient
      {true, true, true, true},     // kWorld
  }};
  for (size_t c = 0; c < kCommunicators; ++c) {
    layouts_[c].spans = kSpans[c];
    for (size_t a = 0; a < kAxes; ++a) {
      if (kSpans[c][a]) layouts_[c].size *= sizes_[a];
    }
  }
}

CommGroupId RankGrid::group_of(RankId rank, Communicator c) const {
  const Layout& l = layout(c);
  size_t index = 0;
  size_t stride = 1;
  for (size_t a = 0; a < kAxes; ++a) {
    if (l.spans[a]) continue;
    index += coordinate(rank, static_cast<Axis>(a)) * stride;
    stride *= sizes_[a];
  }
  return CommGroupId(index);
}

RankId RankGrid::member(CommGroupId group, Communicator c, size_t position) const {
  const Layout& l = layout(c);
  size_t rest = group.index();
  size_t rank = 0;
  for (size_t a = 0; a < kAxes; ++a) {
    size_t& digits = l.spans[a] ? position : rest;
    rank += digits % sizes_[a] * strides_[a];
    digits /= sizes_[a];
  }
  return RankId(rank);
}

}  // namespace herdsim

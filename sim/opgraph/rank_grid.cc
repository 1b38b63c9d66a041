#include "sim/opgraph/rank_grid.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"

namespace herdsim {

RankGrid::RankGrid(const GridShape& shape) {
  HERDSIM_CHECK(shape.tp >= 1 && shape.cp >= 1 && shape.pp >= 1 && shape.dp >= 1)
      << "grid of no ranks";
  HERDSIM_CHECK(shape.inner >= 1 && shape.dp % shape.inner == 0) << "uneven blocks of replicas";
  HERDSIM_CHECK(!shape.mirrored || shape.pp % 2 == 0) << "a stage without a mirror image";
  place_digits(shape);
  lay_out_groups(shape);
}

void RankGrid::place_digits(const GridShape& shape) {
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  sizes_ = {size(shape.tp), size(shape.cp), size(shape.pp), size(shape.dp)};
  digit_sizes_ = {size(shape.tp), size(shape.cp), size(shape.pp), size(shape.inner),
                  size(shape.dp / shape.inner)};
  size_t next = 0;
  for (const Axis axis : shape.order) {
    const auto a = static_cast<size_t>(axis);
    strides_[a] = ranks_;
    const auto first = static_cast<Digit>(a);
    for (const Digit digit : {first, kOuterDigit}) {
      if (digit == kOuterDigit && axis != Axis::kDp) continue;
      HERDSIM_CHECK(next < kDigits) << "an axis twice";
      nesting_[next++] = digit;
      digit_strides_[digit] = ranks_;
      ranks_ *= digit_sizes_[digit];
    }
  }
  HERDSIM_CHECK(next == kDigits) << "an axis is missing";
}

void RankGrid::lay_out_groups(const GridShape& shape) {
  using enum Span;
  const Span copies = shape.mirrored ? kPaired : kFixed;
  const Span experts = shape.experts_span_tp ? kAll : kFixed;
  const std::array<std::array<Span, kDigits>, kCommunicators> kSpans = {{
      {kAll, kFixed, kFixed, kFixed, kFixed},   // kTensor
      {kFixed, kAll, kFixed, kFixed, kFixed},   // kContext
      {kFixed, kAll, copies, kAll, kAll},       // kGradient
      {kFixed, kAll, kFixed, kAll, kFixed},     // kShard
      {kFixed, kFixed, copies, kFixed, kAll},   // kReplica
      {experts, kFixed, kFixed, kAll, kFixed},  // kExpert
      {kFixed, kAll, copies, kFixed, kAll},     // kExpertGradient
      {kFixed, kFixed, kEnds, kFixed, kFixed},  // kEnds
      {kAll, kAll, kAll, kAll, kAll},           // kWorld
  }};
  for (size_t c = 0; c < kCommunicators; ++c) {
    Layout& l = layouts_[c];
    l.spans = kSpans[c];
    for (size_t d = 0; d < kDigits; ++d) {
      const size_t n = digit_sizes_[d];
      switch (l.spans[d]) {
        case kFixed:
          l.count *= n;
          break;
        case kAll:
          l.size *= n;
          break;
        case kPaired:
          l.size *= 2;
          l.count *= n / 2;
          break;
        case kEnds:
          l.size *= n > 1 ? 2 : 1;
          break;
      }
    }
  }
}

CommGroupId RankGrid::group_of(RankId rank, Communicator c) const {
  const Layout& l = layout(c);
  size_t index = 0;
  size_t stride = 1;
  for (const Digit d : nesting_) {
    const size_t n = digit_sizes_[d];
    if (n == 1) continue;
    const size_t value = rank.index() / digit_strides_[d] % n;
    if (l.spans[d] == Span::kFixed) {
      index += value * stride;
      stride *= n;
    } else if (l.spans[d] == Span::kPaired) {
      index += (value < n / 2 ? value : n - 1 - value) * stride;
      stride *= n / 2;
    }
  }
  return CommGroupId(index);
}

RankId RankGrid::member(CommGroupId group, Communicator c, size_t position) const {
  const Layout& l = layout(c);
  size_t rest = group.index();
  size_t rank = 0;
  const auto take = [](size_t& digits, size_t n) {
    const size_t value = digits % n;
    digits /= n;
    return value;
  };
  for (const Digit d : nesting_) {
    const size_t n = digit_sizes_[d];
    if (n == 1) continue;
    size_t value = 0;
    switch (l.spans[d]) {
      case Span::kFixed:
        value = take(rest, n);
        break;
      case Span::kAll:
        value = take(position, n);
        break;
      case Span::kPaired:
        value = take(rest, n / 2);
        if (take(position, 2) == 1) value = n - 1 - value;
        break;
      case Span::kEnds:
        if (n > 1 && take(position, 2) == 1) value = n - 1;
        break;
    }
    rank += value * digit_strides_[d];
  }
  return RankId(rank);
}

void RankGrid::list_members(CommGroupId group, Communicator c, std::vector<RankId>& out) const {
  const Layout& l = layout(c);
  out.assign(1, member(group, c, 0));
  out.reserve(l.size);
  // The members so far are those with the first value of this digit.
  const auto repeat = [&](size_t times, size_t stride) {
    const size_t before = out.size();
    for (size_t i = before; i < before * times; ++i) {
      out.emplace_back(out[i - before].index() + stride);
    }
  };
  for (const Digit d : nesting_) {
    const size_t n = digit_sizes_[d];
    if (n == 1 || l.spans[d] == Span::kFixed) continue;
    if (l.spans[d] == Span::kAll) {
      repeat(n, digit_strides_[d]);
      continue;
    }
    const size_t value = out.front().index() / digit_strides_[d] % n;
    repeat(2, (n - 1 - 2 * value) * digit_strides_[d]);
  }
}

RankGrid::Digit RankGrid::fastest_digit() const {
  return *std::find_if(nesting_.begin(), nesting_.end() - 1,
                       [&](Digit d) { return digit_sizes_[d] > 1; });
}

size_t RankGrid::block_of_one_axis(size_t most) const {
  const Digit d = fastest_digit();
  return d == kPpDigit ? 1 : std::gcd(most, digit_sizes_[d]);
}

bool RankGrid::holds_whole_blocks(Communicator c) const {
  return layout(c).spans[fastest_digit()] != Span::kFixed;
}

}  // namespace herdsim

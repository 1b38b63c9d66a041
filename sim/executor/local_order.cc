#include "sim/executor/local_order.h"

#include <algorithm>
#include <optional>

namespace herdsim {
namespace {

constexpr uint32_t kOutside = UINT32_MAX;
constexpr auto kCompute = static_cast<size_t>(Stream::kCompute);

using Clock = std::array<uint32_t, kLocalStreams>;

bool covers(const Clock& clock, const Clock& all) {
  bool covered = true;
  for (size_t s = 0; s < kLocalStreams; ++s) covered &= clock[s] >= all[s];
  return covered;
}

void join(Clock& clock, const Clock& other) {
  for (size_t s = 0; s < kLocalStreams; ++s) clock[s] = std::max(clock[s], other[s]);
}

// A local op of the stretch that is looked at.
struct Place {
  uint32_t op = 0;
  uint8_t stream = 0;
  bool is_complete = false;  // all before it have ended at its end
  bool is_joined = false;    // there is a meeting before it
  Clock ended{};             // at its end, by stream

  // Of the ops before this one, where there is a meeting, whether all have ended by that clock.
  bool is_met_by(Clock clock) const {
    ++clock[stream];
    return covers(clock, ended);
  }
  Clock before() const {
    Clock clock = ended;
    --clock[stream];
    return clock;
  }
};

class OrderMaker {
 public:
  OrderMaker(const Program& program, const std::vector<LocalFacts>& works, StretchShapes& shapes)
      : program_(program),
        ops_(static_cast<uint32_t>(program.ops.size())),
        works_(works),
        marks_(program, works),
        facts_(shapes.facts_number(works)),
        shapes_(shapes) {}

  std::vector<LocalOrder::Stretch> make() {
    int joined = 0;
    while (const std::optional<uint32_t> first = next_local(first_op_)) {
      if (add_stretch(*first)) continue;
      if (stretches_.empty() || ++joined > kMostJoined) return as_one();
      join_to_last(*first);
    }
    return std::move(stretches_);
  }

 private:
  // Of a dependency on what comes before the stretch.
  static constexpr uint32_t kLastBefore = UINT32_MAX, kEarlier = UINT32_MAX - 1;
  // Each time a longer part is looked at again.
  static constexpr int kMostJoined = 16;

  const LocalFacts& facts(uint32_t op) const { return works_[program_.ops[op].work.index()]; }

  std::optional<uint32_t> next_local(uint32_t op) const {
    while (op < ops_ && !facts(op).is_local) ++op;
    return op < ops_ ? std::optional(op) : std::nullopt;
  }

  // An op that starts beside the last stretch belongs to it.
  void join_to_last(uint32_t op) {
    reaches_ = std::max(reaches_, op);
    first_op_ = stretches_.back().first_op;
    last_before_ = first_op_ == 0 ? kOutside : first_op_ - 1;
    stretches_.pop_back();
  }

  // False: what is in it cannot be told from what came before.
  bool add_stretch(uint32_t first) {
    if (!follows_last(first)) return false;
    const WorkId work = program_.ops[first].work;
    for (const uint32_t shape : shapes_.that_begin_with(work)) {
      if (!reaches_far_enough(shapes_[shape]) || !looks_alike(shapes_[shape])) continue;
      add(shape);
      return true;
    }
    for (const uint32_t shape : shapes_.that_begin_with(work)) {
      if (!reaches_far_enough(shapes_[shape]) || !is_alike(shapes_[shape])) continue;
      add_seen(shape);
      return true;
    }
    if (!find_meetings(false)) return false;
    // What follows can rely only on an end that all have joined.
    add_seen(places_.back().is_complete ? shapes_.add(shape_found(), work)
                                        : shapes_.add(shape_found()));
    return true;
  }

  bool reaches_far_enough(const StretchShape& shape) const {
    return first_op_ + shape.marks.size() > reaches_;
  }

  std::vector<LocalOrder::Stretch> as_one() {
    first_op_ = 0;
    last_before_ = kOutside;
    stretches_.clear();
    find_meetings(true);
    add(shapes_.add(shape_found()));
    return std::move(stretches_);
  }

  void add_seen(uint32_t shape) {
    shapes_.keep_look(shape, facts_, marks_.words(first_op_, shapes_[shape].marks.size()));
    add(shape);
  }

  void add(uint32_t shape) {
    stretches_.push_back({first_op_, shape});
    first_op_ += static_cast<uint32_t>(shapes_[shape].marks.size());
    last_before_ = first_op_ - 1;
  }

  // Whether the op waits, by its stream or otherwise, for the last local op before the stretch,
  // which all others joined.
  bool follows_last(uint32_t op) const {
    if (last_before_ == kOutside || facts(op).stream == facts(last_before_).stream) return true;
    const auto before = program_.dependencies_of(program_.ops[op]);
    return std::find(before.begin(), before.end(), OpId(last_before_)) != before.end();
  }

  uint32_t back_of(OpId before, uint32_t op) const {
    const auto at = static_cast<uint32_t>(before.index());
    if (at >= first_op_ || !facts(at).is_local) return op - at;
    return at == last_before_ ? kLastBefore : kEarlier;
  }

  // As is_alike(), at a glance; false where that does not tell.
  bool looks_alike(const StretchShape& shape) const {
    if (shape.marks.size() > ops_ - first_op_) return false;
    const std::span<const uint64_t> words = marks_.words(first_op_, shape.marks.size());
    return std::any_of(shape.looks.begin(), shape.looks.end(), [&](const StretchShape::Look& look) {
      return look.facts == facts_ && std::equal(words.begin(), words.end(), look.words.begin());
    });
  }

  bool is_alike(const StretchShape& shape) const {
    if (shape.marks.size() > ops_ - first_op_) return false;
    // The last op is local, and tells most shapes apart.
    const size_t last = first_op_ + shape.marks.size() - 1;
    if (shape.marks.back().work != program_.ops[last].work.index()) return false;
    const uint32_t* back = shape.back.data();
    uint32_t o = first_op_;
    for (const StretchShape::Mark& mark : shape.marks) {
      const Op& op = program_.ops[o];
      if (mark.work == kOutside) {
        if (works_[op.work.index()].is_local) return false;
      } else {
        if (mark.work != op.work.index() || mark.dependencies != op.dependencies) return false;
        if (mark.is_awaited != marks_.is_awaited(o)) return false;
        for (const OpId& before : program_.dependencies_of(op)) {
          if (back_of(before, o) != *back++) return false;
        }
      }
      ++o;
    }
    return true;
  }

  // To the end of the stretch, or of the program.
  bool find_meetings(bool to_the_end) {
    places_.clear();
    number_.clear();
    std::vector<uint32_t> meetings;  // ops that have one before them
    Clock all{};                     // of each stream, how many there are so far
    std::array<uint32_t, kLocalStreams> last;
    last.fill(kOutside);
    for (uint32_t o = first_op_; o < ops_; ++o) {
      number_.push_back(kOutside);
      if (!facts(o).is_local) continue;
      const size_t stream = facts(o).stream;
      Place place{.op = o, .stream = facts(o).stream};
      bool touches = to_the_end || follows_last(o) || last[stream] != kOutside;
      if (last[stream] != kOutside) place.ended = places_[last[stream]].ended;
      for (const OpId& before : program_.dependencies_of(program_.ops[o])) {
        const uint32_t at = number_of(before);
        if (at == kOutside) continue;
        join(place.ended, places_[at].ended);
        touches = true;
      }
      const bool joins = covers(place.ended, all);
      if (joins && !to_the_end && !places_.empty() && places_.back().is_complete &&
          places_.back().op >= reaches_ && marks_.is_awaited(places_.back().op)) {
        return true;
      }
      if (!touches) return false;
      while (!meetings.empty() && !places_[meetings.back()].is_met_by(place.ended)) {
        places_[meetings.back()].is_joined = false;
        meetings.pop_back();
      }
      const auto number = static_cast<uint32_t>(places_.size());
      if (joins || number == 0) {
        place.is_joined = true;
        meetings.push_back(number);
      }
      last[stream] = number;
      number_.back() = number;
      ++place.ended[stream];
      ++all[stream];
      place.is_complete = covers(place.ended, all);
      places_.push_back(place);
    }
    return true;
  }

  // Of what was found.
  StretchShape shape_found() {
    StretchShape shape;
    const uint32_t end = places_.back().op + 1;
    shape.marks.reserve(end - first_op_);
    shape.ops.reserve(places_.size());
    for (uint32_t o = first_op_; o < end; ++o) {
      const Op& op = program_.ops[o];
      if (!facts(o).is_local) {
        shape.marks.push_back({.work = kOutside});
        continue;
      }
      shape.marks.push_back(
          {static_cast<uint32_t>(op.work.index()), op.dependencies, marks_.is_awaited(o)});
      for (const OpId& before : program_.dependencies_of(op))
        shape.back.push_back(back_of(before, o));
      shape.ops.push_back(o - first_op_);
    }
    make_segments(shape);
    return shape;
  }

  void make_segments(StretchShape& shape) {
    const auto total = static_cast<uint32_t>(places_.size());
    Clock all{};
    std::vector<uint32_t> kernels;
    uint32_t segments = 0;
    for (uint32_t n = 0; n < total; ++n) {
      segments += n == 0 || places_[n].is_joined ? 1 : 0;
      if (places_[n].stream == kCompute) kernels.push_back(n);
      ++all[places_[n].stream];
    }
    shape.segments.reserve(segments);
    shape.segment_at.assign(total + 1, StretchShape::kNone);
    for (uint32_t first = 0, end = 0; first < total; first = end) {
      for (end = first + 1; end < total && !places_[end].is_joined;) ++end;
      const Clock done = end < total ? places_[end].before() : all;
      const size_t kernel = done[kCompute];
      shape.segment_at[first] = static_cast<uint32_t>(shape.segments.size());
      shape.segments.push_back(
          segment(first, end, done, kernel < kernels.size() ? kernels[kernel] : kOutside, shape));
    }
    shape.segments.back().is_waited_for = true;
  }

  // `kernel`: the next one, here or behind.
  LocalSegment segment(uint32_t first, uint32_t end, const Clock& done, uint32_t kernel,
                       StretchShape& shape) {
    LocalSegment segment{.first = first,
                         .ops = end - first,
                         .first_outside = static_cast<uint32_t>(shape.outside.size()),
                         .first_transfer = static_cast<uint32_t>(shape.transfers.size())};
    for (uint32_t n = first; n < end; ++n) {
      const Place& place = places_[n];
      ++segment.ops_on[place.stream];
      segment.is_whole &= !facts(place.op).is_uneven;
      if (facts(place.op).is_transfer) shape.transfers.push_back(program_.ops[place.op].work);
      wait_for_others(place.op, shape);
      if (!marks_.is_awaited(place.op)) continue;
      segment.is_waited_for = true;
      segment.is_whole &= covers(place.ended, done);
    }
    segment.transfers = static_cast<uint32_t>(shape.transfers.size()) - segment.first_transfer;
    // What waiting for a transfer is booked as is up to the next kernel.
    const auto streams =
        kLocalStreams - 1 - std::count(segment.ops_on.begin() + 1, segment.ops_on.end(), 0);
    if (streams > 0) {
      segment.is_whole &= kernel != kOutside;
      if (kernel != kOutside && kernel >= end) wait_for_others(places_[kernel].op, shape);
    }
    segment.outside = static_cast<uint32_t>(shape.outside.size()) - segment.first_outside;
    if (segment.ops == 1) {
      segment.shape = shapes_.segment_of(program_.ops[places_[first].op].work);
      return segment;
    }
    key_.clear();
    for (uint32_t n = first; n < end; ++n) {
      key_.push_back(static_cast<uint32_t>(program_.ops[places_[n].op].work.index()));
      key_.push_back(0);
      const size_t counted = key_.size() - 1;
      for_each_wait(places_[n].op, first, [&](uint32_t at) {
        ++key_[counted];
        key_.push_back(n - at);
      });
    }
    if (streams > 1 && kernel != kOutside) {
      key_.push_back(kOutside);
      for_each_wait(places_[kernel].op, first, [&](uint32_t at) {
        segment.is_whole &= at < end;
        key_.push_back(end - at);
      });
    }
    segment.shape = shapes_.segment_of(key_);
    return segment;
  }

  // For each of the local ops from `first` on that it depends on.
  template <class Body>
  void for_each_wait(uint32_t op, uint32_t first, Body&& body) const {
    for (const OpId& before : program_.dependencies_of(program_.ops[op])) {
      const uint32_t at = number_of(before);
      if (at != kOutside && at >= first) body(at);
    }
  }

  // Among places_; kOutside of others.
  uint32_t number_of(OpId op) const {
    return op.index() < first_op_ ? kOutside : number_[op.index() - first_op_];
  }

  void wait_for_others(uint32_t op, StretchShape& shape) const {
    for (const OpId& before : program_.dependencies_of(program_.ops[op])) {
      const auto at = static_cast<uint32_t>(before.index());
      if (!facts(at).is_local)
        shape.outside.push_back(static_cast<int32_t>(at) - static_cast<int32_t>(first_op_));
    }
  }

  const Program& program_;
  const uint32_t ops_;
  const std::vector<LocalFacts>& works_;
  const OpMarks marks_;
  const uint32_t facts_;
  StretchShapes& shapes_;
  std::vector<LocalOrder::Stretch> stretches_;
  // The stretch that is looked at.
  uint32_t first_op_ = 0, last_before_ = kOutside;
  uint32_t reaches_ = 0;  // it has this op, if that lies behind its first
  std::vector<Place> places_;
  std::vector<uint32_t> number_;  // by op of the stretch
  std::vector<uint32_t> key_;     // of segment(), kept for its memory
};

}  // namespace

LocalOrder::LocalOrder(const Program& program, const std::vector<LocalFacts>& works,
                       StretchShapes& shapes)
    : stretches_(OrderMaker(program, works, shapes).make()) {}

}  // namespace herdsim

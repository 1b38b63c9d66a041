// The shapes of what a rank does by itself between two places that somebody outside waits for
// (local_order.h), each once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/executor/op_marks.h"
#include "sim/opgraph/op_graph.h"

namespace herdsim {

// Streams on which ops can be local: the first ones of Stream.
constexpr size_t kLocalStreams = static_cast<size_t>(Stream::kEp) + 1;

struct LocalSegment {
  uint32_t first = 0, ops = 0;  // of the stretch's local ops
  uint32_t shape =
      0;  // segments of one shape have the same works with the same dependencies between them
  uint32_t first_outside = 0, outside = 0;
  uint32_t first_transfer = 0, transfers = 0;
  std::array<uint32_t, kLocalStreams> ops_on{};  // by stream
  bool is_whole = true;  // it takes the same each time, and nobody outside waits for an op but
                         // those that end last
  bool is_waited_for = false;  // somebody outside waits for its end
};

struct StretchShape {
  // Op by op, and dependency by dependency, of a part of a program: what another part must have to
  // be of this shape.
  struct Mark {
    uint32_t work = 0;  // kOutside of ops that are not local
    uint32_t dependencies = 0;
    bool is_awaited = false;
  };
  std::vector<Mark> marks;
  std::vector<uint32_t> back;  // how far, or what it is before the part
  // Words (op_marks.h) of parts that were seen to be of this shape, and the facts of works that
  // they are for.
  struct Look {
    uint32_t facts = 0;
    std::vector<uint64_t> words;
  };
  std::vector<Look> looks;

  std::vector<uint32_t> ops;  // the local ones, by their place in the part
  std::vector<LocalSegment> segments;
  std::vector<uint32_t> segment_at;  // by local ops before it
  std::vector<int32_t> outside;      // places; below zero before the part
  std::vector<WorkId> transfers;

  static constexpr uint32_t kNone = UINT32_MAX;
  // The segment before which so many of its local ops lie; null if there is no meeting.
  const LocalSegment* segment_after(uint32_t ops_done) const {
    return segment_at[ops_done] == kNone ? nullptr : &segments[segment_at[ops_done]];
  }
  // The one that the next op is in, by local ops before it. Requires: it is not the end.
  const LocalSegment& segment_with(uint32_t ops_done) const {
    while (segment_at[ops_done] == kNone) --ops_done;
    return segments[segment_at[ops_done]];
  }
  // Whether so many ops end at a meeting that nobody outside waits for.
  bool goes_on_after(uint32_t ops_done) const {
    const uint32_t next = segment_at[ops_done];
    return next != kNone && next > 0 && !segments[next - 1].is_waited_for;
  }
};

// Shapes that occur in a graph, each once.
class StretchShapes {
 public:
  explicit StretchShapes(size_t works) : of_first_(works), of_work_(works, 0) {}
  // By the work of the first local op.
  const std::vector<uint32_t>& that_begin_with(WorkId work) const {
    return of_first_[work.index()];
  }
  // Of what is known of works: equal ones have one number.
  uint32_t facts_number(const std::vector<LocalFacts>& works);
  // Keeps how a part of this shape looks, unless that is nothing to know it by.
  void keep_look(uint32_t shape, uint32_t facts, std::span<const uint64_t> words);
  uint32_t add(StretchShape shape, WorkId first);
  uint32_t add(StretchShape shape);
  // Of a segment of one op.
  uint32_t segment_of(WorkId work);
  // Of any. `key`: of each op its work, how many dependencies it has in the segment, and how far
  // back each is; where it matters, UINT32_MAX and how far back those of the next kernel are.
  uint32_t segment_of(std::span<const uint32_t> key);

  size_t segments() const { return keys_.size(); }
  const StretchShape& operator[](uint32_t shape) const { return shapes_[shape]; }

 private:
  std::vector<StretchShape> shapes_;
  std::vector<std::vector<LocalFacts>> facts_;
  std::vector<std::vector<uint32_t>> of_first_;  // shapes, by the work of their first local op
  std::vector<uint32_t> of_work_;                // of segments of one op, counted from 1
  std::vector<std::vector<uint32_t>> keys_;      // of segments
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;  // of keys of several ops
};

}  // namespace herdsim

// What a rank does by itself, and where in it everything comes together.
//
// Kernels, and transfers among ranks that do the same over links that nobody else uses, concern
// nobody outside the rank. A *meeting* is a place in the order of these local ops at which all ops
// before it have ended whenever one behind it starts, whatever each of them takes. Between two
// meetings lies a *segment*: what goes on in it depends on nothing before it. Most segments are one
// op; where transfers run beside kernels they are a few. A *stretch* is what lies between meetings
// that somebody outside waits for: a pass, or part of one. Passes are alike, so a stretch is looked
// at once and known again.
//
// Meetings are found by the streams' clocks: of each op, how many local ops of each stream have
// ended when it starts, by the op before on its stream and its dependencies. A meeting is before an
// op whose clock has all before it, unless the clock of an op behind lacks one of them.
//
//   StretchShapes shapes(graph);
//   const LocalOrder order(program, works, shapes);
//   const StretchShape& shape = shapes[order.stretches()[k].shape];
//   if (const LocalSegment* next = shape.segment_after(ops_done)) ...
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/opgraph/op_graph.h"

namespace herdsim {

// Streams on which ops can be local: the first ones of Stream.
constexpr size_t kLocalStreams = static_cast<size_t>(Stream::kEp) + 1;

// Of a work on a rank. All works of a stream are local, or none is.
struct LocalFacts {
  uint8_t stream = 0;
  bool is_local = false;
  bool is_transfer = false;
  bool is_uneven = false;  // ranks and micro-batches have more or less of it
  friend bool operator==(const LocalFacts&, const LocalFacts&) = default;
};

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
  std::vector<std::vector<uint32_t>> of_first_;  // shapes, by the work of their first local op
  std::vector<uint32_t> of_work_;                // of segments of one op, counted from 1
  std::vector<std::vector<uint32_t>> keys_;      // of segments
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;  // of keys of several ops
};

class LocalOrder {
 public:
  // `works`, by work.
  LocalOrder(const Program& program, const std::vector<LocalFacts>& works, StretchShapes& shapes);

  struct Stretch {
    uint32_t first_op = 0;  // of the program: the place after the last local op before
    uint32_t shape = 0;
  };
  // One after another they have all local ops of the program.
  const std::vector<Stretch>& stretches() const { return stretches_; }

 private:
  std::vector<Stretch> stretches_;
};

}  // namespace herdsim

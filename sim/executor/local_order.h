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

#include <cstdint>
#include <vector>

#include "sim/executor/stretch_shapes.h"
#include "sim/opgraph/op_graph.h"

namespace herdsim {

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

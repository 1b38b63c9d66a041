// How fast a plan could be at most, without simulating it.
//
// Three lower bounds of the simulated step, all proved against it by tests:
//
//   quick      the longest of: the busiest stage's compute, all that its data-parallel stream has
//              to carry, and the last stage's compute between the first pass to reach it and, where
//              it is the end of the model, the last to come back from it; then the optimizer and
//              the host. A microsecond.
//   timeline   the schedule's own order, run with the least time each pass can take (unit_times.h):
//              longest path through kernels and transfers of each layer, every transfer alone on its
//              links, every kernel after its launch, no kernel on SMs that a transfer holds. Leaves
//              out contention for links, and some of what transfers hide. Linear in the passes.
//   passes     the timeline without gathers and reductions of parameters: found once for plans that
//              differ in sharding alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "tools/study/plan_space.h"

namespace herdsim {

class StepBounds {
 public:
  // Costs what the candidates are made of. Must outlive this object: base.
  // Complexity: the distinct (tp, cp, micro-batch, recompute) and (tp, cp, pp,
  // virtual stages) of the candidates.
  StepBounds(const Scenario& base, const std::vector<PlanCandidate>& candidates);
  ~StepBounds();
  StepBounds(const StepBounds&) = delete;
  StepBounds& operator=(const StepBounds&) = delete;

  // Of candidates given to the constructor. All may be called from several threads at once.
  // Ensures: each is at most the simulated step time.
  Duration quick(const PlanCandidate& candidate) const;
  Duration passes(const PlanCandidate& candidate) const;
  Duration timeline(const PlanCandidate& candidate) const;

 private:
  class Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace herdsim

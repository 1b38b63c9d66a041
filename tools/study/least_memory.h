// The least memory a plan can take: state, and one micro-batch's activations.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "sim/base/units.h"
#include "tools/study/plan_space.h"

namespace herdsim {

// Some stage has no fewer layers.
int64_t most_layers(const ModelArchitecture& model, const ParallelPlan& plan);
// On one rank, of the kind of layer that has fewer.
int64_t least_layer_parameters(const ModelArchitecture& model, const ParallelPlan& plan);

class LeastMemory {
 public:
  // Must outlive this object: base.
  explicit LeastMemory(const Scenario& base) : base_(base) {}

  // Ensures: at most the peak of the stage that takes most. Complexity: constant.
  Bytes of(const PlanCandidate& candidate);

 private:
  double kept_a_token(const PlanCandidate& candidate);

  const Scenario& base_;
  std::map<std::tuple<int64_t, int64_t, Recompute>, double> kept_;  // by tp, cp and recomputation
};

}  // namespace herdsim

// The step simulation as a campaign asks for it: one simulated step for every distinct condition of
// the machine.
#pragma once

#include <memory>
#include <mutex>

#include "sim/job/condition.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/slowed_job.h"

namespace herdsim {

// A slow clock is the software stack's clock factor times the condition's. Slow GPUs and NICs are
// degraded parts; a lost link halves its rail neighbour's, which carries both. Replicas away leave
// their sequences to the others, rounded up to whole micro-batches; where the schedule cannot run
// that number, work spreads as it would without the rounding.
class SimulatedStepTime final : public StepTimeModel {
 public:
  // Must outlive this object: the scenario.
  explicit SimulatedStepTime(const Scenario& scenario);
  Duration step_time(const Condition& condition) const override;
  // Where ranks are placed in topology order and nothing is degraded, replicas are alike, and so
  // are the ranks of a stage. A replica that is nowhere slower than another is never waited for;
  // the rest are the first replicas, in one order, and their slow parts the first ranks of their
  // stages, so that parts of one place in two replicas stay in one place.
  Condition canonical(const Condition& condition) const override;

 private:
  // Made for the first condition that needs it.
  const SlowedJob& slowed_job() const;

  const Scenario& scenario_;
  mutable std::once_flag slowed_made_;
  mutable std::unique_ptr<const SlowedJob> slowed_;
};

}  // namespace herdsim

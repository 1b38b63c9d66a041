// Step times of a campaign's many conditions from few simulated steps.
//
// A synchronous step goes at the pace of its slowest GPU, and what waits for the network at that of
// the slowest NIC:
//
//   step = job * (T(clock, away) + max over slow GPUs of d + max over slow NICs of d)
//   d = T(that part alone) - T(nothing)
//
// where delays of computation grow as clocks fall, and both kinds with the work that replicas away
// leave to others. Slow parts of one host share its NICs and are simulated together, and so are
// three slow NICs or more of one replica (a dead ToR), whose delays add up along the pipeline. d is
// convex in how slow the part is (hidden in the pipeline's slack up to a kink, in proportion beyond
// it), so it is simulated at a few speeds and interpolated; where the step in the middle is off the
// line by more than kTolerance of a step, the halves are looked at separately.
//
// Against simulating a condition as a whole: within 0.5 % for two to six slow parts of Llama 3 8B,
// 70B and 405B on 1,024 to 16,384 GPUs. In jobs of a few hosts rings have too few members for that,
// and their steps are simulated quickly: up to kSimulatedWhole GPUs every condition is. So is one
// without slow parts.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "sim/job/condition.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

class ComposedStepTime final : public StepTimeModel {
 public:
  static constexpr double kTolerance = 2e-3;
  static constexpr int64_t kSimulatedWhole = 512;

  // `exact` simulates, once a condition (MemoisedStepTime); both must outlive this object.
  ComposedStepTime(const StepTimeModel& exact, const ParallelPlan& plan, int64_t gpus_per_host)
      : exact_(exact), plan_(plan), gpus_per_host_(gpus_per_host) {}

  Duration step_time(const Condition& condition) const override;

 private:
  double simulated(const Condition& condition) const {
    return exact_.step_time(condition).seconds();
  }
  // Slow parts that are looked at together, ascending.
  using Group = std::vector<SlowPart>;
  std::vector<Group> groups_of(const Condition& condition) const;
  // The longest d of either kind, at nominal clock.
  struct Delays {
    double computation = 0, network = 0;
  };
  Delays delays_of(const Condition& condition) const;
  Delays remembered_delays(const Condition& condition) const;
  // d of a group, seconds.
  double delay_of(const Group& group) const;
  double interpolated_delay(const SlowPart& part) const;

  const StepTimeModel& exact_;
  const ParallelPlan& plan_;
  const int64_t gpus_per_host_;
  // By slow parts and replicas away: many stretches of a campaign differ in the clock alone. All is
  // forgotten when it is full, so memory does not grow with the horizon.
  static constexpr size_t kMostRemembered = 1 << 15;
  mutable std::mutex mutex_;
  mutable std::map<Condition, Delays> known_;
};

}  // namespace herdsim

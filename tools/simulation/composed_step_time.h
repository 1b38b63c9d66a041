// Step times of a campaign's many conditions from few simulated steps.
//
// A synchronous step goes at the pace of its slowest GPU, and what waits for the network at that of
// the slowest NIC:
//
//   step = job * (T(clock, away) + max over slow GPUs of d + max over slow NICs of d)
//   d = T(that part alone) - T(nothing)
//
// where delays of computation grow as clocks fall, and both kinds with the work that replicas away
// leave to others. Of slow GPUs only the slowest of each kind of place (a stage, where replicas are
// alike) can be the one that is waited for; with nothing else slow on its host, and so on its NICs,
// it is looked at alone. Other slow parts of one host share its NICs and are simulated together,
// and so are three slow NICs or more of one replica (a dead ToR), whose delays add up along the
// pipeline. d is convex in how slow the part is (hidden in the pipeline's slack up to a kink, in
// proportion beyond it), so it is simulated at a few speeds and interpolated; where the step in the
// middle is off the line by more than kTolerance of a step, the halves are looked at separately.
// However many parts come and go, the steps to simulate are some ten a kind of place.
//
// Against simulating a condition as a whole: within 0.5 % for two to six slow parts of Llama 3 8B,
// 70B and 405B on 1,024 to 16,384 GPUs. In jobs of a few hosts rings have too few members for that
// (two to five slow GPUs: off by up to 3 %), and their steps are simulated quickly: up to
// kSimulatedWhole GPUs all slow parts of a condition are simulated together, at nominal clock; d of
// them all takes the place of the two. That is within 0.2 % from 128 GPUs on and within 0.5 % at
// 16, for clocks down by 2.5 %. Conditions without slow parts are simulated as they are.
#pragma once

#include <atomic>
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
  ComposedStepTime(const StepTimeModel& exact, const ParallelPlan& plan, int64_t gpus_per_host);

  Duration step_time(const Condition& condition) const override;

 private:
  double simulated(const Condition& condition) const {
    return exact_.step_time(condition).seconds();
  }
  // Slow parts that are looked at together, ascending.
  using Group = std::vector<SlowPart>;
  std::vector<Group> groups_of(const std::vector<SlowPart>& slow) const;
  // The GPU that stands for this one where it alone is slow.
  int64_t place_of(int64_t gpu) const;
  // The longest d of either kind, at nominal clock.
  struct Delays {
    double computation = 0, network = 0;
  };
  Delays delays_of(const Condition& condition) const;
  // Beyond the healthy step, seconds: of all parts together, and of the longest of either kind.
  double delay_of_all(const Condition& condition) const;
  double delay_of_longest(const Condition& condition) const;
  // d of a group, seconds.
  double remembered_delay(const Group& group) const;
  double delay_of(const Group& group) const;
  double interpolated_delay(const SlowPart& part) const;

  const StepTimeModel& exact_;
  const ParallelPlan& plan_;
  const int64_t gpus_per_host_;
  mutable std::vector<std::atomic<int64_t>> places_;  // by GPU; kUnknown: not asked for yet
  // By group, as the exact model calls it. All is forgotten when it is full, so memory does not
  // grow with the horizon.
  static constexpr size_t kMostRemembered = 1 << 15;
  mutable std::mutex mutex_;
  mutable std::map<Group, double> known_;
};

}  // namespace herdsim

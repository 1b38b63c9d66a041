// The condition of the machine, on which a step's time depends, and who knows that dependence.
//
// A campaign of months meets few distinct conditions: they are quantised, so a step is simulated
// once for each and looked up afterwards. The step simulation implements StepTimeModel;
// PaceOfTheSlowest is the estimate where there is none.
#pragma once

#include <compare>
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <vector>

#include "sim/base/time.h"

namespace herdsim {

// A part slower than nominal. Speeds are in thousandths: 900 is 90 %; 0 is a lost link whose rail
// neighbours carry its traffic.
struct SlowPart {
  int64_t gpu = 0;  // rank in the job
  int32_t compute_permille = 1000;
  int32_t nic_permille = 1000;
  friend auto operator<=>(const SlowPart&, const SlowPart&) = default;
};

struct Condition {
  int32_t clock_permille = 1000;  // every GPU's clock over nominal
  int32_t job_permille =
      1000;                   // step time of the whole job over nominal, for causes without a place
  int64_t replicas_away = 0;  // of the data-parallel dimension; the others share their work
  std::vector<SlowPart> slow;  // ascending, one entry a GPU
  friend auto operator<=>(const Condition&, const Condition&) = default;
};

// Requires of implementations: pure, callable from several threads, longer than zero, and the same
// for equal conditions.
class StepTimeModel {
 public:
  virtual ~StepTimeModel() = default;
  virtual Duration step_time(const Condition& condition) const = 0;
  // The representative of all conditions with the same step time, such as "a slow GPU of stage 3"
  // for any rank of that stage. The fewer there are, the fewer steps are simulated.
  virtual Condition canonical(const Condition& condition) const { return condition; }
};

// The estimate: a synchronous step runs at the pace of the slowest clock, a share of it at that of
// the slowest NIC, and lost replicas leave their micro-batches to the others.
class PaceOfTheSlowest final : public StepTimeModel {
 public:
  struct Shape {
    Duration nominal;
    int64_t data_parallel = 1;
    double network_share = 0.1;  // of a nominal step that waits for the network
    int64_t gpus_per_host = 8;   // rails that take over from a lost one
  };
  explicit PaceOfTheSlowest(Shape shape) : shape_(shape) {}
  Duration step_time(const Condition& condition) const override;
  Condition canonical(const Condition& condition) const override;

 private:
  Shape shape_;
};

// Remembers every condition it was asked about, and is a model itself, so that campaigns on one
// machine can share it. Threads that meet a new condition simulate it side by side with others; who
// meets one that is being simulated waits for it. Since the model is pure, who asks first cannot
// matter.
class MemoisedStepTime final : public StepTimeModel {
 public:
  // `model` must outlive this object.
  explicit MemoisedStepTime(const StepTimeModel& model) : model_(model) {}
  Duration step_time(const Condition& condition) const override;
  Condition canonical(const Condition& condition) const override {
    return model_.canonical(condition);
  }
  size_t distinct_conditions() const;

 private:
  const StepTimeModel& model_;
  mutable std::mutex mutex_;
  mutable std::map<Condition, std::shared_future<Duration>> known_;  // by canonical condition
};

}  // namespace herdsim

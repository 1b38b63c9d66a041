// A stretch of training in which nothing changes: one step time, one checkpoint schedule. Where the
// job stands at any instant is closed-form, so weeks of steps and thousands of checkpoints cost one
// evaluation a disturbance.
//
// Steps are whole. After each step, the tiers whose period divides its number save, one after the
// other, and training waits for each `block`:
//
//   boundary(s) = begin + (s - first) T + sum over tiers of block * #{multiples of the period in
//   (first, s - 1]}
//
// All arithmetic is in integer ticks; tests compare it with a loop over single steps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/base/time.h"
#include "sim/checkpoint/checkpoint_policy.h"

namespace herdsim {

// State as of the end of `step`, safe from `durable_at` on.
struct Snapshot {
  int64_t step = 0;
  Instant durable_at;
  Duration slowdown;  // of all steps up to it, beyond their nominal time
};

class TrainingStretch {
 public:
  TrainingStretch() = default;
  // Training stands at the end of step `first` and step first + 1 begins at `begin`. `slowdown` is
  // what all steps up to `first` took beyond nominal. `tiers` must outlive this object. Requires:
  // step_time > 0.
  TrainingStretch(Instant begin, int64_t first, Duration step_time, Duration nominal,
                  Duration slowdown, std::span<const CheckpointTier> tiers);

  Instant begin() const { return begin_; }
  int64_t first() const { return first_; }
  Duration step_time() const { return step_time_; }

  // When step s ends, before its saves; and when training goes on after them. Requires: s >=
  // first().
  Instant boundary(int64_t s) const;
  Instant ready(int64_t s) const;

  // The stretch seen at one instant. The four durations fill [begin, now] exactly; all are zero
  // before `begin`.
  struct Position {
    int64_t steps = 0;   // ended by now, counted from the start of the run
    Duration nominal;    // of the steps ended in this stretch
    Duration slowdown;   // what they took beyond it
    Duration stalled;    // by saves
    Duration in_flight;  // into the step that has not ended
  };
  Position at(Instant now) const;
  // What steps up to `s` took beyond nominal, since the start of the run.
  Duration slowdown_up_to(int64_t s) const {
    return slowdown_ + (step_time_ - nominal_) * (s - first_);
  }

  // The last snapshot of a tier that began by the end of step s; none if this stretch made none.
  std::optional<Snapshot> last_snapshot(size_t tier, int64_t s) const;

 private:
  // Blocks of all saves after steps in (first, s].
  Duration blocks_through(int64_t s) const;

  Instant begin_;
  int64_t first_ = 0;
  Duration step_time_ = nanoseconds(1);
  Duration nominal_ = nanoseconds(1);
  Duration slowdown_;
  std::span<const CheckpointTier> tiers_;
  double mean_cycle_ = 1;  // ticks a step with its share of saves
  int64_t bracket_ = 1;    // how many steps the mean can be off by
};

}  // namespace herdsim

// How far training has come and what would survive a failure now: the steps, the time they took,
// and the snapshots of every tier. A few numbers whatever the length of the run.
//
// Time goes through it in stretches: begin() one, close() it when something changes or strikes.
// Between the two nothing is stored; closing works out, in closed form, the steps and saves of the
// whole stretch.
//
// Invariants: 1. slowdown() is what steps() steps took beyond nominal, stalls survived included. 2.
// No snapshot is ahead of steps(), none is of the future. 3. Of each tier, newest first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.h"
#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/checkpoint/training_stretch.h"

namespace herdsim {

class TrainingProgress {
 public:
  TrainingProgress(CheckpointPlan plan, Duration nominal_step, Duration archive_every);

  // Trains on from `now`, after standing still for `delay`. A suspended remote store takes no
  // saves. Requires: not in a stretch.
  void begin(Instant now, Duration step_time, Duration delay, bool remote_suspended);
  struct Closed {
    Duration stalled;    // by saves
    Duration in_flight;  // into a step that will not end
  };
  // Requires: in a stretch.
  Closed close(Instant now);
  // The first instant from `now` on between two steps, where a change can take hold. Requires: in a
  // stretch.
  Instant next_boundary(Instant now) const;
  Instant end_of_step(int64_t step) const { return stretch_.boundary(step); }

  int64_t steps() const { return steps_; }
  Duration slowdown() const { return slowdown_; }

  // A failure of this severity at `now`: forgets snapshots that were not durable yet or whose
  // medium is gone.
  void lose_snapshots(Instant now, Severity severity);
  // Forgets everything after `kept`, which becomes the newest of the remote store. For state found
  // to be corrupt.
  void distrust_after(const Snapshot& kept);
  // The current state, saved now to the remote tier and durable after its `persist`; nothing
  // without one. Returns how long a stopped job waits for it.
  Duration save_now(Instant now);
  // Writes to the remote store in flight take longer by `delay`.
  void postpone_remote(Instant now, Duration delay);

  struct Restore {
    Snapshot snapshot;
    Duration load;
    bool remote = true;
    Medium medium = Medium::kRemote;
    // Where the state comes from.
    std::string_view source() const {
      return snapshot.step == 0 ? "initial weights" : kMediumNames[static_cast<size_t>(medium)];
    }
  };
  // The newest snapshot left; of equals the fastest to load. The initial weights where there is
  // none.
  Restore restore_point() const;
  // Goes back to it. The time of the steps thrown away.
  Duration roll_back(const Snapshot& snapshot);

  // The newest remote snapshot that is durable at `now`, and the newest archived one: what a
  // corruption that starts now leaves good. Valid inside and outside a stretch.
  Snapshot good_remote(Instant now) const;
  Snapshot archived() const { return archive_; }
  int64_t remote_saves_between(int64_t from_step, int64_t to_step) const;
  int64_t remote_period_steps() const;  // 0 without a remote tier

  // Requires: not in a stretch.
  CheckpointPlan& plan() { return plan_; }

 private:
  // In flight, the one before it, and one known to be durable.
  using Kept = std::array<std::optional<Snapshot>, 3>;

  std::optional<size_t> remote_tier() const;
  static void remember(Kept& kept, const Snapshot& snapshot);
  static void forget_if(Kept& kept, auto&& predicate);
  void remember_stretch(int64_t last_step);

  CheckpointPlan plan_;
  Duration nominal_;
  int64_t archive_steps_ = 1;
  std::vector<CheckpointTier>
      active_;              // the plan's, without a suspended store; the stretch refers to it
  std::vector<Kept> kept_;  // by tier
  Snapshot archive_;
  TrainingStretch stretch_;
  bool in_stretch_ = false;
  int64_t steps_ = 0;
  Duration slowdown_;
};

}  // namespace herdsim

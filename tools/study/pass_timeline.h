// A schedule's order run with the least time each pass can take: when the last gradient is reduced
// at the earliest.
//
// The plain timeline of workloads/schedules takes one time for all chunks; this one knows that
// chunks differ, that transfers at a pass's edges do not hold the stage, that gathers and reductions
// share one stream a stage, and that a stage's kernels have no more SMs than transfers leave them.
// Every rule leaves waiting out and adds none, so the result is a lower bound of the simulation as
// long as the times are.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/study/unit_times.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {

// Of a unit's parameters or gradients, which may share a bucket with others of its chunk.
struct BucketTransfer {
  LeastTransfer share;  // of the bucket
  int64_t alone = 0;    // the bucket takes no less

  friend BucketTransfer operator+(const BucketTransfer& a, const BucketTransfer& b) {
    return {a.share + b.share, a.alone + b.alone};
  }
};

struct TimelineQuestion {
  const ScheduleRow& row;
  ScheduleShape shape;
  std::vector<int64_t> layers =
      {};  // by model chunk; the first has the embedding, the last the head
  // Of the layers; they lie evenly, so that a chunk of n has at least the whole part of n times
  // this.
  double recompute_fraction = 0;
  std::array<UnitTimes, kUnits> forward{}, backward{}, backward_input{}, backward_weight{};
  // Of the head, on a last stage of several: so many micro-batches leave the weight gradients for
  // the end of its passes.
  int64_t deferred_heads = 0;
  // A whole backward pass runs beside the forward pass before it, kernel by kernel in turn.
  bool pairs = false;
  // A message to the next stage, and from the last stage to the first.
  LeastTransfer next_stage, around;
  // Of data parallelism, zero where there is none.
  std::array<BucketTransfer, kUnits> gather{}, reduce{};
  bool gathers_each_pass = false, reduces_each_pass = false;
  bool overlap = true;  // false: compute waits for gathers, and reductions for the end of compute
  // Of the host, which launches pass after pass ahead of the GPU, a unit's last kernel last; where
  // the stack waits for its messages, not before the pass's has arrived.
  std::array<int64_t, kUnits> launch_forward{}, launch_backward{};
  bool launches_wait = false;
};

// Complexity: linear in the passes.
int64_t run_timeline(const TimelineQuestion& question);

}  // namespace herdsim

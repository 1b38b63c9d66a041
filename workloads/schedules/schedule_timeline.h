// Runs a schedule with constant pass times: the plain twin of the simulator's executor, and what
// says whether an order can run at all.
//
// A stage runs its passes in order, one at a time. A pass starts when the stage is free and its
// input is there:
//   forward of chunk c              needs forward of chunk c - 1
//   backward (or its input half)    needs the stage's own forward and the backward of chunk c + 1
//   weight half                     needs the stage's own input half
// A result reaches another stage `p2p` after the pass that makes it ends, and its own stage at
// once. Transfers occupy no stage.
//
//   const ScheduleTimeline t = time_schedule(*find_schedule("1f1b"), {.stages = 4, .micro_batches =
//   8}, {.forward = ...}); if (t.deadlock) report(t.deadlock->text()); else t.bubble();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {

// Of one chunk. A row that does not split its backward pass takes both halves at once.
struct PassTimes {
  Duration forward, backward_input, backward_weight, p2p;
};

struct TimedPass {
  Pass pass;
  Instant start, end;
};

// Where an order stops: the first stage in number that has passes left, and what it waits for.
struct ScheduleDeadlock {
  int64_t stage = 0;
  Pass pass;  // that cannot start
  int64_t waits_for_stage = 0;
  Pass waits_for;

  // "stage 0: forward of micro-batch 0, chunk 1 waits for stage 3: forward of micro-batch 0, chunk
  // 0"
  std::string text() const;
};

struct ScheduleTimeline {
  std::vector<std::vector<TimedPass>> stages;
  std::vector<Duration> busy;      // by stage: what it computes
  std::vector<int64_t> in_flight;  // by stage: chunk activations held at the peak
  Duration makespan;               // first start to last end of all stages
  std::optional<ScheduleDeadlock> deadlock;

  // First start to last end of one stage.
  Duration span(int64_t stage) const;
  // The longest span over all stages less what that stage computes, over what it computes. Stages
  // of a zero-bubble schedule start and end one after another; where every stage may start its next
  // step when it is done with this one, the span and not the makespan is the time of a step.
  double bubble() const;
};

// Requires: a shape the row has no fault with. Complexity: linear in the passes.
ScheduleTimeline time_schedule(const ScheduleRow& row, const ScheduleShape& shape,
                               const PassTimes& times);

// The same for orders given by hand: `orders[stage]`.
ScheduleTimeline time_orders(const ScheduleRow& row, const ScheduleShape& shape,
                             const std::vector<std::vector<Pass>>& orders, const PassTimes& times);

}  // namespace herdsim

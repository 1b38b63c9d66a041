// Folding in time: a step of many micro-batches from two of few.
//
// Once every stage works at the pace of the slowest, each micro-batch (or group of them, a
// *period*) does what the one before it did, a fixed time later. The step of one period more then
// takes that time more, and so does the next, to the nanosecond:
//
//   is_steady(fewer, more)   =>   T(n + k p) = T(n) + k (T(n + p) - T(n))
//
// where `fewer` and `more` are the runs of n and n + p micro-batches. The proof is by state. Both
// runs are equal up to the *turn*, where `fewer` first does something else because it comes to its
// end. If all that every rank began in the last T = T(n + p) - T(n) before the turn is what it
// began in the T before that, a period of micro-batches later, and nothing older is under way, then
// the simulator is in the state it was in T ago. What is left of `more` is then what was left of
// `fewer` T ago - which is compared, op by op - and goes as it went there.
#pragma once

#include <cstdint>

#include "sim/executor/step_executor.h"

namespace herdsim {

// A run of one step; its outcome has records.
struct RecordedStep {
  const OpGraph& graph;
  const FoldedJob& job;
  const StepOutcome& outcome;
};

// Whether the above holds. `more` is the same job with p micro-batches more. False where it cannot
// be seen: the run is too short for two equal periods, or the schedule runs all forward passes
// before the first backward pass. Complexity: linear in the ops of both, rank class by rank class.
bool is_steady(const RecordedStep& fewer, const RecordedStep& more);

// The outcome of `periods` more than `fewer` has, where that is steady: times, accounts, runs of
// transfers and bytes of links; the events that both ran; without spans and records.
StepOutcome extended(const StepOutcome& fewer, const StepOutcome& more, int64_t periods);

}  // namespace herdsim

// What is drawn over a step's spans: the chain of ops that decides how long the step takes, what each wait was for, and
// what the picture leaves out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"

namespace herdsim {

// One op of the critical path, on whichever rank it ran. They follow each other without a gap.
struct PathSpan {
  RankId rank;
  Instant begin, end;
  uint32_t name = 0;  // index into TraceOverlay::names
  int32_t micro_batch = -1, chunk = -1;
};

// Span `to` began when span `from` of the same rank ended, and its stream had been idle for `waited`.
struct WaitArrow {
  uint32_t from = 0, to = 0;  // places in StepTrace::spans
  Duration waited;
};

struct TraceOverlay {
  std::vector<std::string> names;
  std::vector<PathSpan> critical_path;  // in the order of time
  std::vector<WaitArrow> waits;         // the longest first
  std::vector<std::string> notes;       // what the trace shows and what it leaves out, in sentences
};

}  // namespace herdsim

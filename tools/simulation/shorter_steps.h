// Which shorter steps may stand for one of many micro-batches (sim/executor/steady_state.h).
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedules/schedule.h"

namespace herdsim {

// micro_batches + periods * period are those of the whole step.
struct ShorterSteps {
  int64_t micro_batches = 0;
  int64_t period = 1;
  int64_t periods = 0;

  friend bool operator==(const ShorterSteps&, const ShorterSteps&) = default;
};

// To be tried in their order; none where two shorter steps would save little. A pipeline takes some
// of its depth in micro-batches until all its stages go at the pace of the slowest.
// Ensures: each is a shape that the row allows, as the given one is.
std::vector<ShorterSteps> shorter_steps(const ScheduleRow& row, const ScheduleShape& shape);

}  // namespace herdsim

// What one point of a sweep came to, on its way from who computed it to who writes it: between
// threads as it is, between processes as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics/step_result.h"
#include "traces/db/run_database.h"

namespace herdsim {

struct SweepOutcome {
  int64_t point = 0;
  std::string failed_because;   // "": no program error
  std::string skipped_because;  // "": the rest is filled
  std::string scenario;
  RunRecord record;
  StepResult step;
  std::vector<Metric> metrics;
};

// Of one build for the same build on the same kind of processor, to the bit.
std::string to_bytes(const SweepOutcome& outcome);
// Requires: bytes that to_bytes() made.
SweepOutcome outcome_from_bytes(std::string_view bytes);

}  // namespace herdsim

// The pipeline as it ran: one pass of one rank of a stage.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/observe/span.h"

namespace herdsim {

struct SchedulePass {
  int64_t stage = 0;
  RankId rank;
  StepPhase phase = StepPhase::kUnknown;
  int32_t micro_batch = -1, chunk = -1;  // -1: belongs to none
  Instant begin, end;                    // of its first and last kernel
  std::optional<Bytes> memory;           // allocated while it runs; of passes of a micro-batch
};

}  // namespace herdsim

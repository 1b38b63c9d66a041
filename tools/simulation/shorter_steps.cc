#include "tools/simulation/shorter_steps.h"

namespace herdsim {
namespace {

// After how many micro-batches an order repeats itself.
int64_t period_of(const ScheduleRow& row, const ScheduleShape& shape) {
  if (row.uses_virtual_stages && shape.virtual_stages > 1) return shape.consecutive();
  return row.layout == ChunkLayout::kBidirectional ? 2 : 1;
}

// Two runs of a try, and of those before it that failed, are to take half of the whole step.
constexpr int64_t kLeast = 5, kLonger = 4;

}  // namespace

std::vector<ShorterSteps> shorter_steps(const ScheduleRow& row, const ScheduleShape& shape) {
  const int64_t all = shape.micro_batches, period = period_of(row, shape);
  std::vector<ShorterSteps> tries;
  for (int64_t wanted = 2 * shape.stages + 4 * period; wanted <= all / kLeast; wanted *= kLonger) {
    const int64_t micro_batches = wanted + (all - wanted) % period;
    tries.push_back({micro_batches, period, (all - micro_batches) / period});
  }
  return tries;
}

}  // namespace herdsim

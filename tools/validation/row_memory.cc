#include "tools/validation/row_memory.h"

#include <algorithm>
#include <cmath>

#include "workloads/lowering.h"
#include "workloads/memory/memory_footprint.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

// torch.cuda's readings, printed as GB, are counts of 2^30 bytes.
Bytes printed(double gigabytes) { return Bytes(std::llround(gigabytes * (1 << 30))); }

}  // namespace

RowMemory allocator_memory(const Scenario& s) {
  const bool is_nanotron = s.software.name == "nanotron";
  const ScheduleRow& schedule = *find_schedule(s.training.schedule);
  const ScheduleShape shape = schedule_shape(s.plan, s.training);
  const std::vector<StageLayout> layouts = layout_stages(s.model, s.plan, schedule);
  MemoryQuestion question{s.model, s.plan, s.training, s.software, schedule, shape, layouts, {}};
  question.assumptions.device_context = question.assumptions.communicator = Bytes();
  MemoryQuestion unbroken = question;
  unbroken.assumptions.fragmentation = 0;
  RowMemory memory;
  for (int64_t stage = 0; stage < (is_nanotron ? 1 : shape.stages); ++stage) {
    memory.reserved = std::max(memory.reserved, stage_memory(question, stage).peak);
    const StageMemory allocated =
        is_nanotron ? memory_at_gather(unbroken, stage) : stage_memory(unbroken, stage);
    memory.allocated = std::max(memory.allocated, allocated.peak);
  }
  return memory;
}

std::optional<MemoryComparison> compare_memory(const RunRow& row, const RowMemory& predicted,
                                               Bytes device) {
  const bool reserved = row.reserved_gigabytes.has_value();
  const std::optional<double>& stated =
      reserved ? row.reserved_gigabytes : row.peak_memory_gigabytes;
  if (!stated) return std::nullopt;
  const Bytes measured = printed(*stated);
  constexpr double kSaysNothing = 0.75;
  if (reserved &&
      static_cast<double>(measured.count()) > kSaysNothing * static_cast<double>(device.count())) {
    return std::nullopt;
  }
  return MemoryComparison{reserved ? predicted.reserved : predicted.allocated, measured};
}

}  // namespace herdsim

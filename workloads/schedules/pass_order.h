// What the rows share: appending passes, and the faults of shapes that no row can run.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedules/schedule.h"

namespace herdsim {

// Appends passes; the counts are 64-bit in the rows' arithmetic and 32-bit in the record.
class PassOrder {
 public:
  explicit PassOrder(int64_t passes) { passes_.reserve(static_cast<size_t>(passes)); }
  void add(PassKind kind, int64_t micro_batch, int64_t chunk = 0) {
    passes_.push_back({kind, static_cast<int32_t>(micro_batch), static_cast<int32_t>(chunk)});
  }
  std::vector<Pass> take() { return std::move(passes_); }

 private:
  std::vector<Pass> passes_;
};

// Stages, micro-batches and virtual stages must be positive.
void require_positive_shape(const ScheduleShape& shape, Faults& faults);
// For rows that fix the number of chunks a stage holds: virtual stages must be that number, or 1
// for "not given".
void require_chunks_a_stage(const ScheduleShape& shape, int64_t chunks, std::string_view row,
                            Faults& faults);

}  // namespace herdsim

// What each model chunk of a step is made of, and where it lies.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/schedules/schedule.h"
#include "workloads/step_work.h"

namespace herdsim {

inline bool is_head(UnitKind unit) { return unit == UnitKind::kHead || unit == UnitKind::kTiedHead; }

struct StepLayout {
  const ScheduleRow& schedule;  // must outlive this object
  ScheduleShape shape;
  std::vector<std::vector<UnitKind>> units;  // by model chunk, in forward order
  std::vector<size_t> alike;                 // by model chunk: the first one of the same units

  int64_t chunks() const { return static_cast<int64_t>(units.size()); }
  const std::vector<UnitKind>& units_at(int64_t stage, int64_t chunk) const {
    return units[static_cast<size_t>(model_chunk_at(schedule, shape, {stage, chunk}))];
  }
  // Norms whose gradients are reduced on a stage: `per_layer` of each layer, and the last one where the head is.
  int64_t norms_at(int64_t stage, int64_t per_layer) const;
  // Whether one of the two copies of a tied embedding is on a stage, and the other one elsewhere.
  bool holds_one_end(int64_t stage) const;
};

}  // namespace herdsim

#include "workloads/step_layout.h"

#include <algorithm>

namespace herdsim {

int64_t StepLayout::norms_at(int64_t stage, int64_t per_layer) const {
  int64_t norms = 0;
  for (int64_t chunk = 0; chunk < chunks_per_stage(schedule, shape); ++chunk) {
    for (const UnitKind unit : units_at(stage, chunk)) {
      if (is_layer(unit)) norms += per_layer;
      if (is_head(unit)) ++norms;
    }
  }
  return norms;
}

bool StepLayout::holds_one_end(int64_t stage) const {
  const auto holds = [&](UnitKind unit) {
    for (int64_t chunk = 0; chunk < chunks_per_stage(schedule, shape); ++chunk) {
      const std::vector<UnitKind>& at = units_at(stage, chunk);
      if (std::find(at.begin(), at.end(), unit) != at.end()) return true;
    }
    return false;
  };
  return holds(UnitKind::kHead) || (holds(UnitKind::kEmbedding) && !holds(UnitKind::kTiedHead));
}

}  // namespace herdsim

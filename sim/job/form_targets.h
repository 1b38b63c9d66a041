// The campaign against the closed forms of effective training time, as rows beside the published
// figures of reliability_targets.h.
#pragma once

#include <vector>

#include "sim/job/reliability_targets.h"

namespace herdsim {

void append_form_targets(std::vector<ReliabilityTarget>& rows, int threads);

}  // namespace herdsim

// The published figures of reliability beside what the models and the campaign say.
#pragma once

#include <string>
#include <vector>

#include "sim/job/reliability_targets.h"

namespace herdsim {

std::string reliability_table(const std::vector<ReliabilityTarget>& targets);
std::string reliability_json(const std::vector<ReliabilityTarget>& targets);
std::string reliability_csv(const std::vector<ReliabilityTarget>& targets);

}  // namespace herdsim

// Whether each number of a request is one that can be: finite, positive where it must be, a share within its bounds.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.h"
#include "sim/job/campaign_request.h"

namespace herdsim {

// Adds a fault of the field unless `good`.
void require(bool good, std::string_view field, std::string problem, std::string_view allowed, Faults& faults);

// Of the machine, the step, the horizon and the replicas.
void append_machine_faults(const CampaignRequest& request, Faults& faults);
// Of failures, checkpoints and recovery; fields are named as in a scenario.
void append_number_faults(const CampaignRequest& request, Faults& faults);

}  // namespace herdsim

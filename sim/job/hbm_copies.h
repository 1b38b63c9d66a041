// Checkpoints in HBM: whether a campaign can have them.
#pragma once

#include "sim/job/campaign_spec.h"

namespace herdsim {

// A copy in HBM lives as long as the processes, and needs room beside the step: where a recovery
// ends every process it is left out of the plan, with a warning. Throws: SpecError where the step
// leaves less than the copies take.
void settle_hbm_copies(CampaignSpec& spec);

}  // namespace herdsim

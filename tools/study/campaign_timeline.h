// What one replica of a campaign did, as rows of a timeline: the job's states, throughput and
// effective training time, saves, failures by class, hosts that stand by, are mended or are missed.
#pragma once

#include <string>

#include "sim/job/campaign_trace.h"
#include "sim/observe/timeline.h"

namespace herdsim {

// `title` is of the whole; `gpus_per_host` turns the rank of a victim into its host.
Timeline campaign_timeline(const CampaignTrace& trace, const std::string& title,
                           int64_t gpus_per_host);

}  // namespace herdsim

// Runs a campaign: every replica, over threads, and the result in the order of the replicas.
//
// Replica i draws from streams named by the seed and i, so a replica is the same whoever runs it,
// how many threads there are, and however many other replicas there are.
#pragma once

#include <functional>
#include <optional>

#include "sim/job/campaign_spec.h"
#include "sim/job/campaign_trace.h"
#include "sim/job/condition.h"
#include "sim/metrics/run_result.h"

namespace herdsim {

struct CampaignOptions {
  int threads = 1;
  CampaignTrace* trace = nullptr;  // of replica 0; null: none
  // Called from the calling thread's pool with how many replicas are done; may be empty.
  std::function<void(int64_t done, int64_t of)> progress = {};
};

// `step_time` is asked once a disturbance; one that simulates belongs behind a memory
// (MemoisedStepTime).
// Complexity: replicas * disturbances; memory does not grow with the horizon.
RunResult run_campaign(const CampaignSpec& spec, const StepTimeModel& step_time,
                       const CampaignOptions& options);

// What each failure class and slow component costs: the campaign again with each halved, on the
// same draws, compared replica by replica. Fills `result.contributions`, the largest gain first.
// Differences on the same draws spread so little that the first few replicas do. The last one is
// the campaign without its stragglers.
// Requires: `result` is of run_campaign() with this spec.
constexpr int64_t kMostRankedReplicas = 32;
int64_t ranked_replicas(const CampaignSpec& spec);
int64_t ranked_campaigns(const CampaignSpec& spec);
void rank_contributions(const CampaignSpec& spec, const StepTimeModel& step_time,
                        const CampaignOptions& options, RunResult& result);

// How the campaign saves to its remote store, beside what closed forms advise for its failure rate;
// none for a policy without one.
std::optional<CheckpointFigures> checkpoint_figures(const CampaignSpec& spec, Duration step);

// The campaign without its slow parts, episodes and lasting causes; the day's heat stays. With the
// difference in effective training time this is what finding and removing stragglers would give.
CampaignSpec without_stragglers(const CampaignSpec& spec);

}  // namespace herdsim

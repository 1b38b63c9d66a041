// A campaign with one kind of failure, one restart time and one checkpoint cost: what the closed
// forms of sim/models/young_daly.h describe, for comparing the two.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/job/campaign_spec.h"
#include "sim/metrics/run_result.h"
#include "sim/models/young_daly.h"
#include "sim/reliability/law.h"

namespace herdsim {

struct RenewalCampaign {
  CheckpointProblem problem;
  bool restarts_can_fail = false;
  ArrivalShape law = ArrivalShape::kExponential;
  double weibull_k = 0.75;
  double failures = 20'000;  // to expect over all replicas
  int64_t replicas = 20;
  uint64_t seed = 1;
};

// Steps of a tenth of a second, so that whole steps cost nothing worth counting.
inline constexpr Duration kRenewalStep = milliseconds(100);

CampaignSpec spec_of(const RenewalCampaign& campaign);
RunResult run_renewal_campaign(const RenewalCampaign& campaign, int threads);

// Effective training time over the replicas.
struct Estimate {
  double mean = 0, standard_error = 0;
};
Estimate effective_training_time_of(const RunResult& result);

// 28 points over published and planned fleets, with the mean and standard error that an independent
// Monte Carlo of 20,000 failures gives (exponential, failures only while the job is up).
struct ReferencePoint {
  CheckpointProblem problem;
  double monte_carlo = 0, monte_carlo_error = 0;
};
const std::vector<ReferencePoint>& reference_points();

}  // namespace herdsim

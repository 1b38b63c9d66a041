// What a campaign is: the machine, what fails on it, how it saves and recovers, and for how long,
// as values that code trusts.
//
//   CampaignRequest request{.scenario = "llama3-405b-16384", .machine = {.gpus = 16'384},
//                           .run = {.days = 54}, .nominal_step = milliseconds(6'200)};
//   const RunResult result = run_campaign(resolve(request), PaceOfTheSlowest({.nominal =
//   request.nominal_step}), {});
#pragma once

#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/job/campaign_request.h"
#include "sim/job/campaign_rows.h"
#include "sim/job/recovery_policy.h"
#include "sim/reliability/corruption_detector.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/slow_component.h"

namespace herdsim {

// A bound of tokens that failures never let the job reach must end as well: after this many times
// the time that it would take without any.
constexpr int64_t kLongestOverIdeal = 100;

struct CampaignSpec {
  CampaignRequest request;  // plain numbers, checked
  std::vector<CampaignClass> classes;
  std::vector<CampaignSlow> slow;
  std::vector<CorruptionDetector> detectors;
  CheckpointPlan checkpoints;
  IntervalRule interval_rule = IntervalRule::kFixed;
  RecoveryPolicy recovery;
  Duration horizon = Duration::infinite();
  int64_t target_steps = 0;  // 0: none
  std::vector<std::string> warnings;

  // Of everything that stops the job unplanned, an hour.
  double unplanned_rate_per_hour() const;
};

// Throws: SpecError with every fault, under the scenario's field names.
CampaignSpec resolve(const CampaignRequest& request);

// The interval a rule gives for a mean time between failures. Fixed and adaptive start from
// `fixed`.
Duration interval_by_rule(IntervalRule rule, Duration fixed, Duration block, double mtbf_seconds);

}  // namespace herdsim

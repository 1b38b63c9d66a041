// What a campaign is: the machine, what fails on it, how it saves and recovers, and for how long.
//
// `CampaignRequest` is what a user wrote, by catalogue names and plain numbers under the scenario's
// own field names; `resolve()` checks all of it and gives a `CampaignSpec` of values, which code
// trusts.
//
//   CampaignRequest request{.scenario = "llama3-405b-16384", .machine = {.gpus = 16'384},
//                           .nominal_step = milliseconds(6'200), .days = 54};
//   const RunResult result = run_campaign(resolve(request), PaceOfTheSlowest({.nominal =
//   request.nominal_step}), {});
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/job/recovery_policy.h"
#include "sim/reliability/corruption_detector.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/failure_log.h"
#include "sim/reliability/slow_component.h"

namespace herdsim {

// Changes one class of the base, or adds a row that the base does not use.
struct ClassOverride {
  std::string name;
  std::optional<double> rate_per_hour;  // in the row's units
  std::optional<double> scale;          // times the rate
  std::string law;                      // "" keeps the row's
  std::vector<double> gaps;             // seconds; not empty: the empirical law of a failure log
};

// A log replaces the law and the rate of its classes.
std::vector<ClassOverride> overrides_of(const FailureLog& log);

struct CampaignRequest {
  std::string scenario;
  FailureDomains machine;

  // reliability
  std::string reliability_base = "llama3-54-days";
  double rate_scale = 1;
  std::string law;  // of every unplanned class; "" leaves each its own
  double weibull_k = 0.75;
  std::vector<ClassOverride> classes;
  std::vector<std::string> slow;  // components beside the base's
  std::vector<std::string> corruption_detectors = {"loss_watch"};
  bool restarts_can_fail = true;
  double failure_rate_per_kelvin = 0;  // relative rise of every rate with the day's temperature
  double power_cap_w = 0;              // a GPU; 0: none
  double lemon_share = 0;              // of the hosts
  double lemon_factor = 1;             // their failures over those of the others
  bool remove_lemons = false;          // after their third failure
  double evict_slow_after_s = 0;       // 0: a slow part stays until it recovers by itself

  // checkpoint
  std::string checkpoint_policy = "async";
  double checkpoint_interval_s = 300;
  std::string interval_rule = "fixed";
  int64_t keep_last = 0;            // snapshots in the remote store; 0: all
  double archive_every_s = 86'400;  // those are kept for ever
  Bytes checkpoint_bytes = gigabytes(5'290);
  StorageModel storage;

  // recovery
  std::string recovery_policy = "restart-with-spares";
  int64_t spares = 32;
  int64_t technicians = 0;  // 0: one for every host
  double health_check_s = 600;
  PhaseTimes phases;

  // the job
  Duration nominal_step;
  int64_t data_parallel = 1;
  int64_t tokens_per_step = 0;

  // run: whichever ends first; 0 is no bound
  double days = 0;
  double tokens = 0;
  int64_t replicas = 1;
  uint64_t seed = 1;
};

// `scale` thins or multiplies the row's rate; halving a class keeps every second of its events, the
// same ones each time.
struct CampaignClass {
  FailureClass row;
  double scale = 1;
};
struct CampaignSlow {
  SlowComponent row;
  double scale = 1;
};

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

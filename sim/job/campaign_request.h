// What a user asks of weeks of training, in the parts and under the names of the scenario language:
// `reliability.rate_scale` is `request.reliability.rate_scale`. Defaults of the language are those
// of these structs.
//
// Plain numbers and names of rows; resolve() (campaign_spec.h) checks all of it and gives values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/job/recovery_policy.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/failure_log.h"

namespace herdsim {

// Changes one class of the base, adds a row of the table that the base does not use, or, with an
// `effect`, defines one that the table does not know. What is left out stays as it is in the row.
struct ClassOverride {
  std::string name;
  // How often, in one of three ways.
  std::optional<double> rate_per_hour;       // of one unit, as `per` counts them
  std::optional<double> mtbf_h;              // hours between failures of one unit
  std::optional<double> per_1000_node_days;  // whatever `per` is
  std::optional<double> scale;               // times the rate
  std::string per, law;                      // kExposureNames, kArrivalShapeNames
  std::optional<double> weibull_k, branching, mean_lag_s;
  std::optional<double> detection_s, diagnosis_s, repair_s;  // means
  std::string scope, remedy, effect;  // kScopeNames, kRemedyNames, kEffectNames
};

// Changes one slow component of the base, or adds one.
struct SlowOverride {
  std::string name;
  std::optional<double> scale;  // times the frequency of episodes, the severity of all others
  std::optional<double> rate_per_hour, duration_s;  // of episodes
  std::optional<double> share;                      // of the hosts that are slow
  std::optional<double> slowdown;                   // mean time over nominal, minus one
};

struct ReliabilityRequest {
  std::string base = "llama3-54-days";
  double rate_scale = 1;
  // One known total instead of the base's: what stops the job unplanned keeps its mix and adds up
  // to this. 0: the base's. One of them at most.
  double gpu_mtbf_h = 0;
  double failures_per_1000_node_days = 0;
  double job_mtbf_h = 0;
  std::string law;  // of every unplanned class; "" leaves each its own
  double weibull_k = 0.75;
  std::vector<ClassOverride> classes;
  std::string failure_log;       // where `log` was read; for messages
  int64_t failure_log_gpus = 0;  // of the machine it was taken on; 0: this one
  std::vector<LoggedClass> log;  // replaces law and rate of its classes
  std::vector<SlowOverride> slow;
  std::vector<std::string> corruption_detectors = {"loss_watch"};  // {"none"}: none
  bool restarts_can_fail = true;
  // Rates while the job does not train, over those while it does.
  double failure_rate_while_down = 1;
  double failure_rate_per_kelvin = 0;   // relative rise of every rate with the day's temperature
  double power_cap_w = 0;               // a GPU; 0: none
  double lemon_share = 0;               // of the hosts
  double lemon_factor = 10;             // their failures over those of the others
  bool remove_lemons = false;           // after their third failure
  double evict_slow_after_s = 0;        // 0: a slow part stays until it recovers by itself
  int64_t hosts_per_power_domain = 16;  // assumed: one busway's racks
};

struct CheckpointRequest {
  std::string policy = "async";
  double interval_s = 300;
  std::string rule = "fixed";
  int64_t keep_last = 0;            // snapshots in the remote store; 0: all
  double archive_every_s = 86'400;  // those are kept for ever
  Bytes bytes = gigabytes(5'290);   // of the whole job, once; Llama 3 405B (MLPerf Storage)
  StorageModel storage;
  std::vector<StoreTenant> others;  // jobs that use the same store
};

struct RecoveryRequest {
  std::string policy = "restart-with-spares";
  int64_t spares = 32;
  int64_t technicians = 0;  // 0: one for every host
  double health_check_s = 600;
  // Of mended hosts, those that are not: AIReSim (arXiv:2603.07041) takes 0.4 of automatic repairs,
  // 0.2 of those by hand. 0, since rates of a base count such failures already.
  double unmended_share = 0;
  // Of those, what the check finds: NVIDIA's EUD 0.7 (ByteRobust, SOSP'25). They go back to repair;
  // the others fail again.
  double health_check_recall = 0.7;
  double health_check_false_alarm = 0;  // of sound hosts, those that go back as well; assumed
  double refail_after_s = 1800;  // mean, in the job; 0.5 h gives the gaps that field data show
  // Measured from a failure to training again, without lost work, instead of detection, phases and
  // load; 0: those.
  double restart_s = 0;
  PhaseTimes phases;
};

// Whichever ends first; 0 is no bound.
struct RunRequest {
  double days = 0;
  double tokens = 0;
  int64_t replicas = 32;
};

struct CampaignRequest {
  std::string scenario;
  FailureDomains machine;
  ReliabilityRequest reliability;
  CheckpointRequest checkpoint;
  RecoveryRequest recovery;
  RunRequest run;

  // the job
  Duration nominal_step;
  int64_t data_parallel = 1;
  int64_t tokens_per_step = 0;
  // HBM that the step leaves on its fullest GPU; not known where nobody has simulated it.
  std::optional<Bytes> hbm_free;
  double board_watts = 700;  // limit of a GPU without reliability.power_cap_w
  uint64_t seed = 1;
};

// Everything that is wrong with reliability, checkpoint and recovery, under the scenario's field
// names with indices in brackets ("reliability.classes[2].law"). What concerns the run alone (its
// horizon) is left to resolve().
void append_faults(const CampaignRequest& request, Faults& faults);

}  // namespace herdsim

// What weeks of training answer: a plain record that reports print, databases store and tests
// compare.
//
// Effective training time is useful over elapsed time, and a step is useful for its nominal time:
// what a slow machine adds is in the account's slowdown. Llama 3 (arXiv:2407.21783, 3.3.4) may have
// counted slow steps whole; `kept_step_share` does:
//   effective training time = training / horizon,   kept step share = (training + slowdown) /
//   horizon.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/models/clock_power.h"

namespace herdsim {

// Where the time of a campaign goes. At every instant it is in exactly one of these.
enum class RunTerm : uint8_t {
  kTraining,  // nominal time of steps that were kept
  kCheckpointStall,
  kLostWork,  // steps thrown away by rollbacks, and the one in flight
  kDetection,
  kDiagnosis,
  kReschedule,
  kInit,  // processes and communicators
  kCheckpointLoad,
  kWarmup,
  kWaitingForSpares,
  kMaintenance,  // planned stops and the restarts after them
  kSlowdown,     // of kept steps beyond nominal, and stalls that were survived
};
constexpr size_t kRunTerms = 12;
constexpr std::array<std::string_view, kRunTerms> kRunTermNames = {
    "training", "checkpoint_stall", "lost_work", "detection",          "diagnosis",   "reschedule",
    "init",     "checkpoint_load",  "warmup",    "waiting_for_spares", "maintenance", "slowdown"};

using RunAccount = std::array<Duration, kRunTerms>;

// One replica of the campaign: one draw of everything that may happen.
struct ReplicaResult {
  Duration horizon;
  RunAccount account{};           // sums to the horizon, exactly
  int64_t steps = 0;              // kept at the end
  int64_t planned = 0;            // interruptions
  std::vector<int64_t> by_class;  // interruptions, in the order of RunResult::class_names
  int64_t refailures = 0;         // of those, by hosts that came back from repair unmended
  int64_t undetected_corruptions = 0;
  int64_t restarts_begun = 0;    // attempts, of which a failure may end one
  int64_t deepest_shortage = 0;  // hosts waited for at once
  int64_t events = 0;

  double effective_training_time() const;
};

// What one class or slow component costs: the gain in effective training time if it were halved, on
// the very same draws. Of stragglers: if they were not there.
struct Contribution {
  std::string name;
  double if_changed = 0;   // effective training time, mean over replicas
  double gain = 0;         // over the campaign's own
  double gain_stderr = 0;  // of the mean of the paired differences
  int64_t replicas = 0;    // that were run again
  // Of the mean gain, by the normal law.
  double gain_low() const { return gain - 1.96 * gain_stderr; }
  double gain_high() const { return gain + 1.96 * gain_stderr; }
};

// How the campaign saves to the remote store, beside what closed forms advise
// (sim/models/young_daly.h). Zeros where nothing fails.
struct CheckpointFigures {
  std::string policy, rule;
  Bytes bytes;
  int64_t interval_steps = 0;
  double interval_s = 0;
  double block_s = 0;  // training waits
  double save_s = 0;   // until it is durable
  double load_s = 0;
  // Every place that snapshots go to, and how often, the fastest first; more than one for tiers.
  struct Tier {
    std::string medium;
    int64_t every_steps = 0;
    double load_s = 0;
  };
  std::vector<Tier> tiers;
  Bytes hbm_a_gpu;       // that snapshots keep
  double restart_s = 0;  // from a failure to training, without lost work
  double young_s = 0, daly_s = 0;
  double young_with_restart_s = 0;      // sqrt(2 w (M + u))
  double period_including_write_s = 0;  // counts the save itself
  double effective_first_order = 0;     // of this interval, by Kokolis et al.
};

struct RunResult {
  std::string scenario;
  int64_t gpus = 0;
  std::vector<std::string> class_names;
  std::vector<bool> class_planned;
  std::vector<ReplicaResult> replicas;
  std::vector<Contribution> contributions;  // most costly first; empty unless asked for
  // All slow parts but the day's heat removed at once; none where there are none.
  std::optional<Contribution> without_stragglers;

  Duration nominal_step;
  int64_t tokens_per_step = 0;
  double target_tokens = 0;    // that were asked for; 0: a number of days was
  Flops model_flops_per_step;  // causal
  FlopRate peak;               // dense, one GPU
  double busy_watts = 700;     // a GPU while training; 700 is the H100's limit
  double idle_watts = ClockPowerModel().idle_w;  // while the job is down

  // By the rates, before anything is drawn: unplanned failures of the job an hour.
  double expected_rate_per_hour = 0;
  std::optional<CheckpointFigures> checkpoint;

  // How it was simulated; not part of the fingerprint.
  int64_t distinct_conditions = 0;  // steps simulated
  double wall_seconds = 0;

  std::vector<std::string> warnings;

  double mean_horizon_seconds() const;
  double effective_training_time() const;  // mean over replicas
  double effective_training_time_quantile(double probability) const;
  double kept_step_share() const;
  std::array<double, kRunTerms> time_account_seconds() const;  // means
  double interruptions(size_t class_index) const;              // mean
  double unexpected() const;
  double planned() const;
  double undetected_corruptions() const;
  double refailures() const;
  double mean_time_between_interruptions_seconds()
      const;  // all of them; the horizon where there were none
  double steps() const;
  double tokens() const { return steps() * static_cast<double>(tokens_per_step); }
  double tokens_per_second() const;
  double mfu() const;  // over elapsed time
  double gpu_hours() const;
  double gpu_energy_megawatt_hours() const;  // GPUs only; hosts and cooling add a half to one more
  // Days until `target` tokens are trained, at the mean pace; infinite where nothing is trained.
  double days_to_tokens(double target) const;
  // The same at the pace of the replicas between which `probability` of them lie below, and if
  // nothing failed and no step were slow.
  double days_to_tokens_quantile(double target, double probability) const;
  double days_to_tokens_without_failures(double target) const;
  std::string fingerprint() const;
};

// Interpolated quantile of a sample. Requires: not empty, 0 <= probability <= 1.
double sample_quantile(std::vector<double> sample, double probability);

}  // namespace herdsim

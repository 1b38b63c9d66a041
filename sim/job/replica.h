// One replica of a campaign: a job on a machine that breaks, from its first step to the horizon.
//
// The engine holds a handful of events: the next failure, the next hour, the end of the current
// phase, hosts in repair. Between them training is closed-form (TrainingProgress), so a replica
// costs what its disturbances cost.
//
// A failure while recovering starts the recovery over, as in the form e^{lambda u} of
// sim/models/young_daly.h. A change of condition takes hold at the next step. A planned stop waits
// for the step, saves, and loses nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/time.h"
#include "sim/checkpoint/training_progress.h"
#include "sim/engine/engine.h"
#include "sim/job/campaign_spec.h"
#include "sim/job/campaign_trace.h"
#include "sim/job/condition.h"
#include "sim/job/failure_source.h"
#include "sim/job/job_state.h"
#include "sim/job/slow_source.h"
#include "sim/job/spare_pool.h"
#include "sim/metrics/run_result.h"

namespace herdsim {

class Replica {
 public:
  // Everything passed must outlive this object; `trace` may be null.
  Replica(const CampaignSpec& spec, const StepTimeModel& step_time, uint64_t index,
          CampaignTrace* trace);
  Replica(const Replica&) = delete;  // events hold references to it
  Replica& operator=(const Replica&) = delete;

  // Runs to the horizon or the last step. Call once.
  ReplicaResult run();

 private:
  // A corruption nobody has seen yet: the last state before it, and what it will take to mend.
  struct Corruption {
    uint64_t id = 0;
    FailureEvent event;
    Snapshot good, archived;
  };

  // Failures (replica_failures.cc).
  void on_failure(const FailureEvent& event);
  void on_slower_network(const FailureEvent& event, bool takes_tor);
  void on_stop(const FailureEvent& event, Duration detection, int64_t hosts);
  void on_planned_stop(const FailureEvent& event);
  void on_stall(const FailureEvent& event);
  void on_outage(const FailureEvent& event);
  void on_corruption(const FailureEvent& event);
  void on_corruption_noticed(uint64_t id);
  std::optional<Duration> corruption_latency(const FailureEvent& event);
  // `fault`: what a repair may leave, where it is one host.
  void lose_hosts(int64_t hosts, Duration repair, SparePool::Fault fault = SparePool::kSound);
  // Takes hosts from the pool; those that were not mended fail again.
  int64_t take_hosts(int64_t wanted);
  void on_refailure(size_t class_index);
  void fall_back(Severity severity, bool replicas_hold_the_state);

  // Training (replica_training.cc).
  void start_training();
  void stop_training();
  void begin_stretch(Duration delay);
  void at_next_boundary();
  void on_boundary();
  void begin_planned_stop();
  void adapt_interval();
  void set_failure_pace();

  // Phases (replica.cc).
  void enter(JobState next);
  void follow(JobEvent event) { enter(next_state(state_, event)); }
  Duration phase_length() const;
  void on_phase_done();
  void find_hosts();
  bool may_shrink() const;
  int64_t replicas_away() const;
  void on_host_returned();
  void hire();
  void finish();

  // The trace (replica_trace.cc); all of it does nothing where nobody asked for one.
  void make_room();
  CampaignTrace::Incident* note(std::string_view what, const FailureEvent& event);
  void note_stop(const FailureEvent& event, bool planned, Duration lost_work);
  void note_recovery();
  void note_pace(double steps_per_hour);
  void note_saves(int64_t first_step, Instant begin);
  void note_hosts();

  const CampaignSpec& spec_;
  const StepTimeModel& step_time_;
  const Duration nominal_;
  uint64_t index_;
  CampaignTrace* trace_;

  Engine engine_;
  TrainingProgress progress_;
  FailureSource failures_;
  SlowSource slow_;
  SparePool pool_;
  std::vector<RngStream> detector_streams_;
  RngStream refailures_;

  JobState state_ = JobState::kRunning;
  Instant since_;
  EventId phase_end_, boundary_, caught_up_, last_step_;
  ReplicaResult result_;
  bool done_ = false;

  TrainingProgress::Restore restore_;
  int64_t furthest_step_ = 0;  // ever reached; training below it is replay
  int64_t missing_ = 0;        // hosts the job lacks
  int64_t arriving_ = 0;       // of those, found and starting up (replica-level recovery)
  Duration detection_;
  double diagnosis_seconds_ = 0;
  bool in_place_ = false;
  bool planned_ = false;     // the way up follows a planned stop
  bool regrouping_ = false;  // members change; processes live on
  Duration planned_length_;
  bool waited_ = false;  // for hosts, on this way up
  Instant stopped_at_;   // training
  Instant stretch_begin_;
  std::vector<size_t> open_incidents_;  // of the trace, since training stopped

  bool stop_at_boundary_ = false;
  bool evict_at_boundary_ = false;
  bool regroup_at_boundary_ = false;
  Duration stall_at_boundary_;
  Instant outage_until_;
  std::vector<Corruption> corruptions_;
  uint64_t last_corruption_ = 0;
  int64_t unplanned_ = 0;
};

}  // namespace herdsim

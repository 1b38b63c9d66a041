#include "sim/job/replica.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "sim/base/check.h"

namespace herdsim {
namespace {

RunTerm term_of(JobState state) {
  switch (state) {
    case JobState::kRunning:
    case JobState::kReplaying:
      return RunTerm::kTraining;
    case JobState::kDetecting:
      return RunTerm::kDetection;
    case JobState::kDiagnosing:
      return RunTerm::kDiagnosis;
    case JobState::kRescheduling:
      return RunTerm::kReschedule;
    case JobState::kWaitingForSpares:
      return RunTerm::kWaitingForSpares;
    case JobState::kStarting:
    case JobState::kInitialising:
      return RunTerm::kInit;
    case JobState::kLoading:
      return RunTerm::kCheckpointLoad;
    case JobState::kWarmingUp:
      return RunTerm::kWarmup;
    case JobState::kMaintenance:
      return RunTerm::kMaintenance;
  }
  return RunTerm::kTraining;
}

}  // namespace

Replica::Replica(const CampaignSpec& spec, const StepTimeModel& step_time, uint64_t index,
                 CampaignTrace* trace)
    : spec_(spec),
      step_time_(step_time),
      nominal_(step_time.step_time(Condition{})),
      index_(index),
      trace_(trace),
      progress_(spec.checkpoints, nominal_,
                seconds_rounded_up(spec.request.checkpoint.archive_every_s)),
      failures_(engine_, spec, index, [this](const FailureEvent& event) { on_failure(event); }),
      slow_(
          engine_, spec, index, [this] { at_next_boundary(); },
          [this] {
            evict_at_boundary_ = true;
            at_next_boundary();
          }),
      pool_(
          engine_,
          {.spares =
               spec.recovery.replacement == Replacement::kRepair ? 0 : spec.request.recovery.spares,
           .technicians = spec.request.recovery.technicians,
           .health_check = seconds_rounded_up(spec.request.recovery.health_check_s),
           .unmended_share = spec.request.recovery.unmended_share,
           .recall = spec.request.recovery.health_check_recall,
           .false_alarm = spec.request.recovery.health_check_false_alarm},
          RngStream(spec.request.seed, "hosts/health_check", index),
          [this] { on_host_returned(); }),
      refailures_(spec.request.seed, "hosts/refailures", index) {
  for (const CorruptionDetector& detector : spec.detectors) {
    detector_streams_.emplace_back(spec.request.seed,
                                   std::string("corruption/") + std::string(detector.name), index);
  }
  result_.by_class.assign(spec.classes.size(), 0);
}

ReplicaResult Replica::run() {
  Duration horizon = spec_.horizon;
  if (spec_.target_steps > 0) {
    horizon = std::min(horizon, nominal_ * spec_.target_steps * kLongestOverIdeal);
  }
  engine_.at(Instant::start() + horizon, [this] { finish(); });
  slow_.start();
  failures_.start();
  start_training();
  engine_.run();
  HERDSIM_CHECK(done_) << "replica " << index_ << " ended at " << engine_.now().seconds()
                       << " s without a result";
  return result_;
}

void Replica::enter(JobState next) {
  const Instant now = engine_.now();
  if (!is_training(state_)) {
    const RunTerm term = planned_ ? RunTerm::kMaintenance : term_of(state_);
    result_.account[static_cast<size_t>(term)] += now - since_;
  }
  if (trace_ != nullptr && now > since_) {
    make_room();
    trace_->phases.push_back({.state = state_, .begin = since_, .end = now, .planned = planned_});
  }
  state_ = next;
  since_ = now;
  engine_.cancel(phase_end_);
  if (is_training(next)) return;
  if (next == JobState::kWaitingForSpares) {
    waited_ = true;
    return;  // until a host returns
  }
  phase_end_ = engine_.after(phase_length(), [this] { on_phase_done(); });
}

Duration Replica::phase_length() const {
  const PhaseTimes& times = spec_.request.recovery.phases;
  const RecoveryPolicy& policy = spec_.recovery;
  const auto lasting = [](double s) { return seconds_rounded_up(s); };
  switch (state_) {
    case JobState::kDetecting:
      return detection_;
    case JobState::kDiagnosing:
      return lasting(diagnosis_seconds_ * policy.diagnosis);
    case JobState::kRescheduling:
      return in_place_ ? Duration::zero() : lasting(times.reschedule_s * policy.reschedule);
    case JobState::kStarting:
      return lasting(times.start_s * (in_place_ ? policy.in_place_start : policy.start));
    case JobState::kInitialising:
      return lasting(regrouping_ ? policy.regroup_seconds : times.init_s * policy.init);
    case JobState::kLoading: {
      if (regrouping_) return Duration::zero();
      Instant from = std::max(engine_.now(), restore_.snapshot.durable_at);
      if (restore_.remote) from = std::max(from, outage_until_);
      return from - engine_.now() + restore_.load;
    }
    case JobState::kWarmingUp:
      return regrouping_ ? Duration::zero() : lasting(times.warmup_s * policy.warmup);
    case JobState::kMaintenance:
      return planned_length_;
    case JobState::kRunning:
    case JobState::kReplaying:
    case JobState::kWaitingForSpares:
      break;
  }
  return Duration::infinite();
}

void Replica::on_phase_done() {
  switch (state_) {
    case JobState::kDiagnosing:
      follow(regrouping_ ? JobEvent::kRegroup : JobEvent::kPhaseDone);
      break;
    case JobState::kRescheduling:
    case JobState::kMaintenance:
      find_hosts();
      break;
    case JobState::kWarmingUp:
      follow(progress_.steps() < furthest_step_ ? JobEvent::kBehind : JobEvent::kPhaseDone);
      start_training();
      break;
    default:
      follow(JobEvent::kPhaseDone);
      break;
  }
}

int64_t Replica::replicas_away() const {
  const int64_t hosts_per_replica =
      std::max<int64_t>(1, spec_.request.machine.hosts() / spec_.request.data_parallel);
  return (missing_ + hosts_per_replica - 1) / hosts_per_replica;
}

bool Replica::may_shrink() const {
  return spec_.recovery.replacement == Replacement::kShrink &&
         replicas_away() < spec_.request.data_parallel;
}

int64_t Replica::take_hosts(int64_t wanted) {
  std::vector<SparePool::Fault> bad;
  const int64_t taken = pool_.take(wanted, bad);
  for (const SparePool::Fault fault : bad) {
    const double mean = spec_.request.recovery.refail_after_s;
    const Duration lasts = seconds_rounded_up(-std::log(refailures_.uniform()) * mean);
    const auto class_index = static_cast<size_t>(fault);
    engine_.after(lasts, [this, class_index] { on_refailure(class_index); });
  }
  return taken;
}

void Replica::find_hosts() {
  missing_ -= take_hosts(missing_);
  note_hosts();
  result_.deepest_shortage = std::max(result_.deepest_shortage, missing_);
  follow(missing_ == 0 || may_shrink() ? JobEvent::kPhaseDone : JobEvent::kHostsMissing);
}

void Replica::on_host_returned() {
  if (done_) return;
  note_hosts();
  if (missing_ == 0) return;
  if (state_ == JobState::kWaitingForSpares) {
    missing_ -= take_hosts(missing_);
    note_hosts();
    if (missing_ == 0 || may_shrink()) follow(JobEvent::kHostsFound);
    return;
  }
  if (spec_.recovery.per_replica) {
    hire();
  } else if (is_training(state_)) {
    // An elastic job grows back by a stop that loses nothing.
    stop_at_boundary_ = true;
    at_next_boundary();
  }
}

// Replica-level recovery: hosts join once they have started up, at the price of a regroup.
void Replica::hire() {
  const int64_t found = take_hosts(missing_ - arriving_);
  if (found == 0) return;
  arriving_ += found;
  const PhaseTimes& times = spec_.request.recovery.phases;
  const RecoveryPolicy& policy = spec_.recovery;
  const Duration up =
      seconds_rounded_up(times.reschedule_s * policy.reschedule + times.start_s * policy.start +
                         times.init_s * policy.init + times.warmup_s * policy.warmup) +
      progress_.restore_point().load;
  engine_.after(up, [this, found] {
    if (done_) return;
    // A restart of everything in between has already placed them.
    const int64_t joining = std::min(found, arriving_);
    arriving_ -= joining;
    missing_ -= joining;
    if (joining == 0 || !is_training(state_)) return;
    regroup_at_boundary_ = true;
    at_next_boundary();
  });
}

void Replica::finish() {
  if (done_) return;
  const Instant now = engine_.now();
  if (is_training(state_)) {
    const int64_t first_step = progress_.steps();
    const TrainingProgress::Closed closed = progress_.close(now);
    note_saves(first_step, stretch_begin_);
    result_.account[static_cast<size_t>(RunTerm::kCheckpointStall)] += closed.stalled;
    // Cut off by the horizon, not lost.
    result_.account[static_cast<size_t>(RunTerm::kTraining)] += closed.in_flight;
  }
  enter(JobState::kRunning);
  done_ = true;
  failures_.stop();
  slow_.stop();
  for (const EventId event : {phase_end_, boundary_, caught_up_, last_step_}) engine_.cancel(event);
  result_.horizon = now.since_start();
  result_.steps = progress_.steps();
  result_.account[static_cast<size_t>(RunTerm::kTraining)] += nominal_ * progress_.steps();
  result_.account[static_cast<size_t>(RunTerm::kSlowdown)] += progress_.slowdown();
  result_.events = engine_.events_run();
  const Duration sum =
      std::accumulate(result_.account.begin(), result_.account.end(), Duration::zero());
  HERDSIM_CHECK(sum == result_.horizon)
      << "replica " << index_ << " accounts for " << sum.nanoseconds() << " ns of "
      << result_.horizon.nanoseconds();
}

}  // namespace herdsim

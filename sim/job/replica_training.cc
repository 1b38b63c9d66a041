// Training of a replica: stretches, and what waits for the boundary between two steps.
#include <algorithm>
#include <cmath>

#include "sim/job/replica.h"

namespace herdsim {
namespace {

// Assumed: a slow host that was taken out is looked at for a day.
constexpr Duration kSlowHostRepair = hours(24);

}  // namespace

void Replica::start_training() {
  note_recovery();
  waited_ = false;
  planned_ = false;
  regrouping_ = false;
  if (!spec_.request.reliability.restarts_can_fail) failures_.resume();
  adapt_interval();
  begin_stretch(Duration::zero());
  // Requests that came while the job was down, of hosts that returned or slow parts that were
  // noticed.
  if (evict_at_boundary_ || regroup_at_boundary_) at_next_boundary();
}

void Replica::begin_stretch(Duration delay) {
  Condition condition = slow_.condition();
  condition.replicas_away = replicas_away();
  // Transfers that happen to meet less often do not make a slow machine faster than a sound one.
  const Duration step = std::max(nominal_, step_time_.step_time(condition));
  const Instant now = engine_.now();
  progress_.begin(now, step, delay, now < outage_until_);
  stretch_begin_ = now;
  note_pace(3600 / step.seconds());
  if (state_ == JobState::kReplaying) {
    caught_up_ =
        engine_.at(progress_.end_of_step(furthest_step_), [this] { follow(JobEvent::kCaughtUp); });
  }
  if (spec_.target_steps > 0) {
    last_step_ = engine_.at(progress_.end_of_step(spec_.target_steps), [this] { finish(); });
  }
  set_failure_pace();
}

// Rates follow the day's temperature, and the load: a machine that waits may fail less.
void Replica::set_failure_pace() {
  const ReliabilityRequest& reliability = spec_.request.reliability;
  const bool follows_load = reliability.failure_rate_while_down != 1;
  if (!follows_load && reliability.failure_rate_per_kelvin == 0) return;
  const double load = is_training(state_) ? 1 : reliability.failure_rate_while_down;
  failures_.set_pace(load * std::exp(reliability.failure_rate_per_kelvin * slow_.kelvin()));
}

void Replica::stop_training() {
  const int64_t first_step = progress_.steps();
  const TrainingProgress::Closed closed = progress_.close(engine_.now());
  note_saves(first_step, stretch_begin_);
  stopped_at_ = engine_.now();
  note_pace(0);
  result_.account[static_cast<size_t>(RunTerm::kCheckpointStall)] += closed.stalled;
  result_.account[static_cast<size_t>(RunTerm::kLostWork)] += closed.in_flight;
  if (engine_.now() < outage_until_)
    progress_.postpone_remote(engine_.now(), outage_until_ - engine_.now());
  furthest_step_ = std::max(furthest_step_, progress_.steps());
  for (const EventId event : {boundary_, caught_up_, last_step_}) engine_.cancel(event);
  boundary_ = {};
}

void Replica::at_next_boundary() {
  if (done_ || !is_training(state_) || boundary_) return;
  boundary_ = engine_.at(progress_.next_boundary(engine_.now()), [this] { on_boundary(); });
}

void Replica::on_boundary() {
  stop_training();
  const Duration delay = stall_at_boundary_;
  stall_at_boundary_ = Duration::zero();
  if (evict_at_boundary_) {
    evict_at_boundary_ = false;
    const int64_t hosts = slow_.evict_noticed();
    // What recovered by itself needs no eviction.
    if (hosts > 0) {
      note("slow host taken out", {.hosts = hosts});
      lose_hosts(hosts, kSlowHostRepair);
      stop_at_boundary_ = true;
    }
  }
  if (stop_at_boundary_) {
    begin_planned_stop();
  } else if (regroup_at_boundary_) {
    regroup_at_boundary_ = false;
    regrouping_ = true;
    planned_ = true;
    follow(JobEvent::kRegroup);
  } else {
    begin_stretch(delay);
  }
}

void Replica::begin_planned_stop() {
  stop_at_boundary_ = false;
  regroup_at_boundary_ = false;
  missing_ -= arriving_;
  arriving_ = 0;
  in_place_ = spec_.recovery.in_place && missing_ == 0;
  ++result_.restarts_begun;
  planned_length_ = progress_.save_now(engine_.now()) +
                    seconds_rounded_up(spec_.request.recovery.phases.maintenance_s);
  restore_ = progress_.restore_point();
  result_.account[static_cast<size_t>(RunTerm::kLostWork)] +=
      progress_.roll_back(restore_.snapshot);
  if (!spec_.request.reliability.restarts_can_fail) failures_.pause();
  follow(JobEvent::kPlannedStop);
  set_failure_pace();
  planned_ = true;
}

void Replica::adapt_interval() {
  if (spec_.interval_rule != IntervalRule::kAdaptive) return;
  const double prior_rate = spec_.unplanned_rate_per_hour();
  if (prior_rate <= 0) return;
  // The rate the campaign was planned with counts as one failure.
  const double seen = engine_.now().seconds() + 3600 / prior_rate;
  const double mtbf = seen / static_cast<double>(unplanned_ + 1);
  for (const CheckpointTier& tier : progress_.plan().tiers) {
    if (!tier.follows_interval) continue;
    const Duration interval =
        interval_by_rule(spec_.interval_rule, Duration::zero(), tier.block, mtbf);
    set_interval(progress_.plan(), interval, nominal_);
    return;
  }
}

}  // namespace herdsim

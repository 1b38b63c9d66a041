// Failures of a replica: what each kind does to the job.
#include <algorithm>

#include "sim/job/replica.h"

namespace herdsim {
namespace {

// NCCL's retries: 4.096 us * 2^20 * 7. A link that is back by then only stalls the job.
constexpr Duration kRetryBudget = milliseconds(30'100);

Severity severity_of(int64_t hosts) {
  if (hosts == 0) return Severity::kProcess;
  return hosts == 1 ? Severity::kHost : Severity::kDomain;
}

}  // namespace

void Replica::on_failure(const FailureEvent& event) {
  if (done_) return;
  const FailureClass& row = spec_.classes[event.class_index].row;
  const bool takes_tor = (event.wide ? row.wider_scope : row.scope) == Scope::kTor;
  if (traffic_moves(row, takes_tor, spec_.request.machine, spec_.recovery.rail_failover)) {
    on_slower_network(event, takes_tor);
    return;
  }
  switch (row.effect) {
    case Effect::kStop:
      on_stop(event, event.detection, event.hosts);
      break;
    case Effect::kPlannedStop:
      on_planned_stop(event);
      break;
    case Effect::kStall:
      on_stall(event);
      break;
    case Effect::kCorruption:
      on_corruption(event);
      break;
    case Effect::kStorageOutage:
      on_outage(event);
      break;
  }
}

// A flap that moves to another port or rail is over before anybody counts it.
void Replica::on_slower_network(const FailureEvent& event, bool takes_tor) {
  const FailureClass& row = spec_.classes[event.class_index].row;
  if (row.effect == Effect::kStall) return;
  const FailureDomains& machine = spec_.request.machine;
  const bool has_ports = row.on_one_plane && machine.planes > 1;
  FailureEvent survived = event;
  survived.hosts = 0;
  note(takes_tor ? "ToR lost" : has_ports ? "port lost" : "rail lost", survived);
  const int64_t nic_permille = has_ports ? 1000 * (machine.planes - 1) / machine.planes : 0;
  slow_.degrade_nics(takes_tor ? machine.gpus_under_tor_of(event.gpu) : std::vector{event.gpu},
                     static_cast<int32_t>(nic_permille), event.repair);
}

void Replica::on_stop(const FailureEvent& event, Duration detection, int64_t hosts) {
  const FailureClass& row = spec_.classes[event.class_index].row;
  const Duration lost_before = result_.account[static_cast<size_t>(RunTerm::kLostWork)];
  ++result_.by_class[event.class_index];
  ++unplanned_;
  detection_ = detection;
  diagnosis_seconds_ = row.diagnosis_seconds >= 0 ? row.diagnosis_seconds
                                                  : spec_.request.recovery.phases.diagnosis_s;
  if (spec_.recovery.moves_domain && hosts > 0) {
    hosts = std::max(hosts, spec_.request.machine.hosts_lost(Scope::kTor));
  }
  const bool was_training = is_training(state_);
  if (was_training) stop_training();
  // A ToR or a power domain is mended by itself: the hosts it took are sound.
  const bool is_the_hosts_own = event.hosts == 1 && row.scope == Scope::kHost && !event.wide;
  lose_hosts(
      hosts, event.repair,
      is_the_hosts_own ? static_cast<SparePool::Fault>(event.class_index) : SparePool::kSound);
  // Only a corruption has to give up steps that healthy replicas still hold.
  const bool others_hold_the_state =
      (was_training || regrouping_) && row.effect != Effect::kCorruption;
  regrouping_ = spec_.recovery.per_replica && hosts > 0 && others_hold_the_state &&
                replicas_away() < spec_.request.data_parallel;
  if (regrouping_) {
    hire();
  } else {
    missing_ -= arriving_;
    arriving_ = 0;
    in_place_ = spec_.recovery.in_place && missing_ == 0;
    fall_back(severity_of(hosts), was_training && others_hold_the_state);
  }
  note_stop(event, false, result_.account[static_cast<size_t>(RunTerm::kLostWork)] - lost_before);
  ++result_.restarts_begun;
  if (!spec_.request.reliability.restarts_can_fail) failures_.pause();
  // What the stopped job was doing is booked as it was meant: as maintenance, if planned.
  follow(JobEvent::kFailure);
  set_failure_pace();
  planned_ = false;
}

void Replica::lose_hosts(int64_t hosts, Duration repair, SparePool::Fault fault) {
  missing_ += hosts;
  for (int64_t i = 0; i < hosts; ++i)
    pool_.send_to_repair(repair, i == 0 ? fault : SparePool::kSound);
  if (hosts > 0) note_hosts();
}

void Replica::on_refailure(size_t class_index) {
  if (done_) return;
  if (!spec_.request.reliability.restarts_can_fail && !is_training(state_)) {
    // Nothing fails meanwhile: it waits for as long as it would have run.
    const double mean = spec_.request.recovery.refail_after_s;
    engine_.after(seconds_rounded_up(-std::log(refailures_.uniform()) * mean),
                  [this, class_index] { on_refailure(class_index); });
    return;
  }
  ++result_.refailures;
  on_failure(failures_.repeated(class_index, refailures_));
}

// Chooses the snapshot to start again from and throws away what came after it.
void Replica::fall_back(Severity severity, bool replicas_hold_the_state) {
  progress_.lose_snapshots(engine_.now(), severity);
  const bool replica_is_whole = spec_.request.data_parallel > 1 && severity != Severity::kDomain;
  // It is written while the machine is diagnosed; loading waits for it.
  if (spec_.checkpoints.just_in_time && replicas_hold_the_state && replica_is_whole)
    progress_.save_now(engine_.now());
  restore_ = progress_.restore_point();
  result_.account[static_cast<size_t>(RunTerm::kLostWork)] +=
      progress_.roll_back(restore_.snapshot);
  for (Corruption& corruption : corruptions_) {
    // The fault is still there, but the state is older than it.
    if (restore_.snapshot.step < corruption.good.step) corruption.good = restore_.snapshot;
  }
}

void Replica::on_planned_stop(const FailureEvent& event) {
  ++result_.by_class[event.class_index];
  ++result_.planned;
  // While the job is down anyway, the work is done along the way.
  if (!is_training(state_)) {
    note(spec_.classes[event.class_index].row.name, event);
    return;
  }
  note_stop(event, true, Duration::zero());
  stop_at_boundary_ = true;
  at_next_boundary();
}

void Replica::on_stall(const FailureEvent& event) {
  if (event.detection > kRetryBudget) return on_stop(event, kRetryBudget, 0);
  note(spec_.classes[event.class_index].row.name, event);
  if (!is_training(state_)) return;
  stall_at_boundary_ += event.detection;
  at_next_boundary();
}

void Replica::on_outage(const FailureEvent& event) {
  note(spec_.classes[event.class_index].row.name, event);
  outage_until_ = std::max(outage_until_, engine_.now() + event.detection);
  at_next_boundary();
  engine_.at(outage_until_, [this] { at_next_boundary(); });
}

std::optional<Duration> Replica::corruption_latency(const FailureEvent& event) {
  const bool arithmetic = event.mark <= kArithmeticShare;
  std::optional<Duration> soonest;
  for (size_t i = 0; i < spec_.detectors.size(); ++i) {
    const CorruptionDetector& detector = spec_.detectors[i];
    const double sees = detector_streams_[i].uniform();
    const double u = detector_streams_[i].uniform();
    if (sees > (arithmetic ? detector.arithmetic_recall : detector.transfer_recall)) continue;
    const Duration latency =
        detector.latency.mean_seconds > 0 ? detector.latency.draw(u) : event.detection;
    if (!soonest || latency < *soonest) soonest = latency;
  }
  return soonest;
}

void Replica::on_corruption(const FailureEvent& event) {
  const std::optional<Duration> latency = corruption_latency(event);
  if (!latency) {
    ++result_.undetected_corruptions;
    note("corruption nobody will see", event);
    return;
  }
  note("corruption begins", event);
  const uint64_t id = ++last_corruption_;
  corruptions_.push_back({.id = id,
                          .event = event,
                          .good = progress_.good_remote(engine_.now()),
                          .archived = progress_.archived()});
  engine_.after(*latency, [this, id] { on_corruption_noticed(id); });
}

void Replica::on_corruption_noticed(uint64_t id) {
  if (done_) return;
  const auto found = std::find_if(corruptions_.begin(), corruptions_.end(),
                                  [id](const Corruption& c) { return c.id == id; });
  const Corruption corruption = *found;
  corruptions_.erase(found);
  Snapshot good = corruption.good;
  const int64_t keep_last = spec_.request.checkpoint.keep_last;
  // The store has thrown that snapshot away by now.
  if (keep_last > 0 && progress_.remote_saves_between(good.step, progress_.steps()) > keep_last)
    good = corruption.archived;
  if (is_training(state_)) {
    stop_training();
    progress_.distrust_after(good);
    enter(JobState::kDetecting);
    regrouping_ = false;
  } else {
    progress_.distrust_after(good);
  }
  on_stop(corruption.event, Duration::zero(), corruption.event.hosts);
}

}  // namespace herdsim

// What a replica tells of itself, where somebody asked for a trace.
#include <algorithm>
#include <string>

#include "sim/job/replica.h"

namespace herdsim {

void Replica::make_room() {
  if (!trace_->make_room()) return;
  open_incidents_.clear();
  for (size_t i = 0; i < trace_->incidents.size(); ++i) {
    if (trace_->incidents[i].is_open) open_incidents_.push_back(i);
  }
}

CampaignTrace::Incident* Replica::note(std::string_view what, const FailureEvent& event) {
  if (trace_ == nullptr) return nullptr;
  make_room();
  trace_->incidents.push_back(
      {.at = engine_.now(), .what = std::string(what), .hosts = event.hosts, .gpu = event.gpu});
  return &trace_->incidents.back();
}

void Replica::note_stop(const FailureEvent& event, bool planned, Duration lost_work) {
  CampaignTrace::Incident* incident = note(spec_.classes[event.class_index].row.name, event);
  if (incident == nullptr) return;
  incident->planned = planned;
  incident->stops = true;
  incident->lost_work = lost_work;
  incident->is_open = true;
  open_incidents_.push_back(trace_->incidents.size() - 1);
}

void Replica::note_recovery() {
  if (trace_ == nullptr) return;
  const Instant now = engine_.now();
  for (const size_t index : open_incidents_) {
    CampaignTrace::Incident& incident = trace_->incidents[index];
    // A planned stop waits for the end of its step.
    incident.is_open = false;
    incident.down = now - std::max(incident.at, stopped_at_);
    std::string by = "restart on the same hosts";
    if (regrouping_) {
      by = "the other replicas train on";
    } else if (in_place_) {
      by = "restart in place";
    } else if (missing_ > 0) {
      by = "fewer replicas";
    } else if (incident.hosts > 0) {
      by = waited_ ? "mended host" : "spare host";
    }
    if (!regrouping_ && !incident.planned) by += "; " + std::string(restore_.source());
    incident.recovered_by = std::move(by);
  }
  open_incidents_.clear();
}

void Replica::note_pace(double steps_per_hour) {
  if (trace_ == nullptr) return;
  make_room();
  const Instant now = engine_.now();
  const double elapsed = (now - Instant::start()).seconds();
  const double kept = static_cast<double>(progress_.steps()) * nominal_.seconds();
  CampaignTrace::Pace pace{.at = now,
                           .steps_per_hour = steps_per_hour,
                           .effective = elapsed > 0 ? std::min(1.0, kept / elapsed) : 1};
  // A boundary stops and begins at one instant; the viewer shows the last.
  if (!trace_->pace.empty() && trace_->pace.back().at == now) {
    trace_->pace.back() = pace;
  } else {
    trace_->pace.push_back(pace);
  }
}

void Replica::note_saves(int64_t first_step, Instant begin) {
  if (trace_ == nullptr) return;
  make_room();
  const int64_t count = progress_.remote_saves_between(first_step, progress_.steps());
  if (count == 0 || engine_.now() <= begin) return;
  trace_->saves.push_back({.begin = begin,
                           .end = engine_.now(),
                           .count = count,
                           .every_steps = progress_.remote_period_steps()});
}

void Replica::note_hosts() {
  if (trace_ == nullptr) return;
  make_room();
  const CampaignTrace::Hosts now{
      .at = engine_.now(), .spare = pool_.free(), .in_repair = pool_.away(), .missing = missing_};
  if (!trace_->hosts.empty() && trace_->hosts.back().at == now.at) {
    trace_->hosts.back() = now;
  } else {
    trace_->hosts.push_back(now);
  }
}

}  // namespace herdsim

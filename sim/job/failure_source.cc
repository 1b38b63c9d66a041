#include "sim/job/failure_source.h"

#include <algorithm>
#include <cmath>

namespace herdsim {
namespace {

Duration drawn_repair(const FailureClass& row, double quick_mark, double u) {
  if (row.remedy != Remedy::kReplace) return Duration::zero();
  if (quick_mark <= row.quick_share) return seconds_rounded_up(row.quick_repair_seconds);
  return row.repair.draw(u);
}

}  // namespace

FailureSource::FailureSource(Engine& engine, const CampaignSpec& spec, uint64_t replica,
                             std::function<void(const FailureEvent&)> on_failure)
    : engine_(engine), spec_(spec), on_failure_(std::move(on_failure)) {
  for (const CampaignClass& c : spec.classes) {
    const double units = static_cast<double>(spec.request.machine.units(c.row.per));
    const double rate = c.row.rate_per_hour * units * std::max(1.0, c.scale) / 3600;
    sources_.push_back(
        {.stream = RngStream(spec.request.seed, std::string("failures/") + std::string(c.row.name),
                             replica),
         .mean_gap_seconds = rate > 0 ? 1 / rate : 0,
         .keep = std::min(1.0, c.scale),
         .infinite = !(rate > 0)});
  }
  add_lemons(replica);
}

void FailureSource::add_lemons(uint64_t replica) {
  const CampaignRequest& request = spec_.request;
  const double hosts = static_cast<double>(request.machine.hosts());
  // A job of a few hosts has one in some replicas and none in others.
  const double mean = request.reliability.lemon_share * hosts;
  RngStream fraction(request.seed, "failures/lemon_count", replica);
  const auto count =
      static_cast<size_t>(std::floor(mean) + (fraction.uniform() <= mean - std::floor(mean)));
  if (count == 0 || request.reliability.lemon_factor <= 1) return;
  lemons_.resize(count);
  double per_host = 0;
  for (const CampaignClass& c : spec_.classes) {
    const bool of_hosts = c.row.scope == Scope::kHost && c.row.effect == Effect::kStop;
    const double units = static_cast<double>(request.machine.units(c.row.per));
    if (of_hosts) per_host += c.row.rate_per_hour * c.scale * units / hosts / 3600;
    lemon_share_.push_back(per_host);
  }
  const double rate =
      per_host * static_cast<double>(count) * (request.reliability.lemon_factor - 1);
  sources_.push_back({.stream = RngStream(request.seed, "failures/lemons", replica),
                      .mean_gap_seconds = rate > 0 ? 1 / rate : 0,
                      .infinite = !(rate > 0)});
}

void FailureSource::fire_lemon() {
  // After the third failure a host is known for one.
  constexpr int kStrikes = 3;
  push_arrival(spec_.classes.size());
  RngStream& stream = sources_.back().stream;
  const double which = stream.uniform() * static_cast<double>(lemons_.size());
  const double mark = stream.uniform() * lemon_share_.back();
  const auto cause = std::lower_bound(lemon_share_.begin(), lemon_share_.end(), mark);
  double unused = 0;
  const FailureEvent event =
      draw(static_cast<size_t>(cause - lemon_share_.begin()), stream, unused);
  schedule_next();
  Lemon& lemon = lemons_[std::min(lemons_.size() - 1, static_cast<size_t>(which))];
  const bool removed = spec_.request.reliability.remove_lemons && lemon.strikes >= kStrikes;
  if (removed || engine_.now() < lemon.away_until) return;
  ++lemon.strikes;
  lemon.away_until = engine_.now() + event.repair;
  on_failure_(event);
}

void FailureSource::start() {
  for (size_t c = 0; c < sources_.size(); ++c) push_arrival(c);
  resume();
}

void FailureSource::push_arrival(size_t c) {
  Source& source = sources_[c];
  if (source.infinite) return;
  const ArrivalLaw law = c < spec_.classes.size() ? spec_.classes[c].row.law : ArrivalLaw{};
  const double u = source.stream.uniform();
  double gap = draw_gap_seconds(law, source.mean_gap_seconds, u);
  // A schedule does not know when the campaign begins: its phase is uniform, so that its rate is
  // what the row says.
  if (law.shape == ArrivalShape::kScheduled && !source.scheduled) gap *= u;
  source.scheduled = true;
  due_.push({.exposure_seconds = exposure_seconds_ + gap, .class_index = c});
}

void FailureSource::settle_exposure() {
  if (!paused_) exposure_seconds_ += (engine_.now() - since_).seconds() * pace_;
  since_ = engine_.now();
}

void FailureSource::schedule_next() {
  engine_.cancel(next_);
  if (paused_ || pace_ <= 0 || due_.empty()) return;
  const double wait = std::max(0.0, due_.top().exposure_seconds - exposure_seconds_) / pace_;
  const Duration delay = seconds_rounded_up(wait);
  if (delay.is_finite()) next_ = engine_.after(delay, [this] { fire(); });
}

void FailureSource::pause() {
  settle_exposure();
  paused_ = true;
  engine_.cancel(next_);
}

void FailureSource::resume() {
  settle_exposure();
  paused_ = false;
  schedule_next();
}

void FailureSource::set_pace(double pace) {
  settle_exposure();
  pace_ = pace;
  schedule_next();
}

void FailureSource::stop() {
  pause();
  due_ = {};
}

FailureEvent FailureSource::draw(size_t c, RngStream& stream, double& thinning) {
  const FailureClass& row = spec_.classes[c].row;
  const FailureDomains& machine = spec_.request.machine;
  thinning = stream.uniform();
  const double scope_mark = stream.uniform();
  const double victim = stream.uniform();
  const double detection = stream.uniform();
  const double quick = stream.uniform();
  const double repair = stream.uniform();

  FailureEvent event{.class_index = c};
  event.wide = scope_mark <= row.wider_share;
  event.hosts = machine.hosts_lost(event.wide ? row.wider_scope : row.scope);
  event.gpu =
      std::min(machine.gpus - 1, static_cast<int64_t>(victim * static_cast<double>(machine.gpus)));
  event.detection = row.detection.draw(detection);
  event.repair = drawn_repair(row, quick, repair);
  event.mark = stream.uniform();
  return event;
}

FailureEvent FailureSource::repeated(size_t class_index, RngStream& stream) {
  double unused = 0;
  FailureEvent event = draw(class_index, stream, unused);
  event.wide = false;
  event.hosts = spec_.request.machine.hosts_lost(spec_.classes[class_index].row.scope);
  return event;
}

void FailureSource::fire() {
  settle_exposure();
  const Due due = due_.top();
  due_.pop();
  // Rounding to ticks may leave exposure a hair short of what was due.
  exposure_seconds_ = std::max(exposure_seconds_, due.exposure_seconds);
  if (due.class_index == spec_.classes.size()) return fire_lemon();
  const ArrivalLaw& law = spec_.classes[due.class_index].row.law;
  Source& source = sources_[due.class_index];
  if (!due.follow_up) push_arrival(due.class_index);
  double thinning = 0;
  const FailureEvent event = draw(due.class_index, source.stream, thinning);
  if (law.shape == ArrivalShape::kClustered) {
    const double returns = source.stream.uniform();
    const double lag = -std::log(source.stream.uniform()) * law.mean_lag_seconds;
    if (returns <= law.branching) {
      due_.push({.exposure_seconds = exposure_seconds_ + lag,
                 .class_index = due.class_index,
                 .follow_up = true});
    }
  }
  schedule_next();
  if (thinning <= source.keep) on_failure_(event);
}

std::vector<double> failures_component_by_component(uint64_t seed, int64_t components,
                                                    double rate_per_hour, double horizon_seconds) {
  std::vector<double> times;
  for (int64_t i = 0; i < components; ++i) {
    RngStream stream(seed, "failures/by_component", static_cast<uint64_t>(i));
    for (double t = 0;;) {
      t += -std::log(stream.uniform()) * 3600 / rate_per_hour;
      if (t > horizon_seconds) break;
      times.push_back(t);
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace herdsim

#include "sim/checkpoint/training_progress.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr int64_t kNeverSaves = std::numeric_limits<int64_t>::max() / 2;

}  // namespace

TrainingProgress::TrainingProgress(CheckpointPlan plan, Duration nominal_step,
                                   Duration archive_every)
    : plan_(std::move(plan)), nominal_(nominal_step), kept_(plan_.tiers.size()) {
  archive_steps_ = std::max<int64_t>(1, archive_every.nanoseconds() / nominal_step.nanoseconds());
}

void TrainingProgress::begin(Instant now, Duration step_time, Duration delay,
                             bool remote_suspended) {
  HERDSIM_CHECK(!in_stretch_) << "a stretch is open since " << stretch_.begin().seconds() << " s";
  active_ = plan_.tiers;
  for (CheckpointTier& tier : active_) {
    if (remote_suspended && tier.medium == Medium::kRemote) tier.period_steps = kNeverSaves;
  }
  slowdown_ += delay;
  stretch_ = TrainingStretch(now + delay, steps_, step_time, nominal_, slowdown_, active_);
  in_stretch_ = true;
}

TrainingProgress::Closed TrainingProgress::close(Instant now) {
  HERDSIM_CHECK(in_stretch_) << "no stretch is open at " << now.seconds() << " s";
  in_stretch_ = false;
  if (now < stretch_.begin()) {
    slowdown_ -= stretch_.begin() - now;  // the rest of the delay did not happen
    return {};
  }
  const TrainingStretch::Position position = stretch_.at(now);
  steps_ = position.steps;
  slowdown_ += position.slowdown;
  remember_stretch(position.steps);
  return {.stalled = position.stalled, .in_flight = position.in_flight};
}

void TrainingProgress::remember_stretch(int64_t last_step) {
  for (size_t tier = 0; tier < active_.size(); ++tier) {
    const auto newest = stretch_.last_snapshot(tier, last_step);
    if (!newest) continue;
    if (const auto before = stretch_.last_snapshot(tier, newest->step - 1))
      remember(kept_[tier], *before);
    remember(kept_[tier], *newest);
  }
  const int64_t archived = last_step / archive_steps_ * archive_steps_;
  if (archived > stretch_.first() && remote_tier()) {
    archive_ = {.step = archived,
                .durable_at = stretch_.boundary(archived),
                .slowdown = stretch_.slowdown_up_to(archived)};
  }
}

void TrainingProgress::remember(Kept& kept, const Snapshot& snapshot) {
  // What is durable when a newer one begins stays so; the oldest of the three is never needed
  // again.
  std::move_backward(kept.begin(), kept.end() - 1, kept.end());
  kept.front() = snapshot;
}

void TrainingProgress::forget_if(Kept& kept, auto&& predicate) {
  for (auto& snapshot : kept) {
    if (snapshot && predicate(*snapshot)) snapshot.reset();
  }
  std::stable_partition(kept.begin(), kept.end(), [](const auto& s) { return s.has_value(); });
}

Instant TrainingProgress::next_boundary(Instant now) const {
  if (now <= stretch_.begin()) return stretch_.begin();
  const int64_t done = stretch_.at(now).steps;
  const Instant goes_on = stretch_.ready(done);
  return now <= goes_on ? goes_on : stretch_.ready(done + 1);
}

void TrainingProgress::lose_snapshots(Instant now, Severity severity) {
  for (size_t tier = 0; tier < kept_.size(); ++tier) {
    const bool gone = severity > kMediumSurvives[static_cast<size_t>(plan_.tiers[tier].medium)];
    forget_if(kept_[tier], [&](const Snapshot& s) { return gone || s.durable_at > now; });
  }
}

void TrainingProgress::distrust_after(const Snapshot& good) {
  for (Kept& kept : kept_) forget_if(kept, [&](const Snapshot& s) { return s.step > good.step; });
  if (archive_.step > good.step) archive_ = {};
  if (const auto remote = remote_tier()) {
    Kept& kept = kept_[*remote];
    if (!kept.front() || kept.front()->step < good.step) remember(kept, good);
  }
}

Duration TrainingProgress::save_now(Instant now) {
  const auto remote = remote_tier();
  if (!remote) return Duration::zero();
  const CheckpointTier& tier = plan_.tiers[*remote];
  const Duration whole = tier.block + tier.persist;
  remember(kept_[*remote], {.step = steps_, .durable_at = now + whole, .slowdown = slowdown_});
  return whole;
}

void TrainingProgress::postpone_remote(Instant now, Duration delay) {
  const auto remote = remote_tier();
  if (!remote) return;
  for (auto& snapshot : kept_[*remote]) {
    if (snapshot && snapshot->durable_at > now) snapshot->durable_at = snapshot->durable_at + delay;
  }
}

TrainingProgress::Restore TrainingProgress::restore_point() const {
  Restore best;
  bool found = false;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const CheckpointTier& tier = plan_.tiers[i];
    if (!kept_[i].front()) {
      // Whatever is loaded instead comes from the same store.
      if (!found && tier.medium == Medium::kRemote) best.load = tier.load;
      continue;
    }
    const Snapshot& snapshot = *kept_[i].front();
    const Duration load = tier.load_of(snapshot.step);
    const bool better = !found || snapshot.step > best.snapshot.step ||
                        (snapshot.step == best.snapshot.step && load < best.load);
    if (better)
      best = {.snapshot = snapshot,
              .load = load,
              .remote = tier.medium == Medium::kRemote,
              .medium = tier.medium};
    found = true;
  }
  return best;
}

Duration TrainingProgress::roll_back(const Snapshot& snapshot) {
  const Duration lost = nominal_ * (steps_ - snapshot.step) + (slowdown_ - snapshot.slowdown);
  steps_ = snapshot.step;
  slowdown_ = snapshot.slowdown;
  return lost;
}

Snapshot TrainingProgress::good_remote(Instant now) const {
  const auto remote = remote_tier();
  if (!remote) return {};
  if (in_stretch_) {
    const int64_t done = stretch_.at(now).steps;
    for (auto s = stretch_.last_snapshot(*remote, done); s;
         s = stretch_.last_snapshot(*remote, s->step - 1)) {
      if (s->durable_at <= now) return *s;
    }
  }
  for (const auto& snapshot : kept_[*remote]) {
    if (snapshot && snapshot->durable_at <= now) return *snapshot;
  }
  return {};
}

int64_t TrainingProgress::remote_saves_between(int64_t from_step, int64_t to_step) const {
  const auto remote = remote_tier();
  if (!remote) return 0;
  const int64_t period = plan_.tiers[*remote].period_steps;
  return to_step / period - from_step / period;
}

int64_t TrainingProgress::remote_period_steps() const {
  const auto remote = remote_tier();
  return remote ? plan_.tiers[*remote].period_steps : 0;
}

std::optional<size_t> TrainingProgress::remote_tier() const {
  for (size_t i = 0; i < plan_.tiers.size(); ++i) {
    if (plan_.tiers[i].medium == Medium::kRemote) return i;
  }
  return std::nullopt;
}

}  // namespace herdsim

#include "sim/checkpoint/training_stretch.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {

TrainingStretch::TrainingStretch(Instant begin, int64_t first, Duration step_time, Duration nominal,
                                 Duration slowdown, std::span<const CheckpointTier> tiers)
    : begin_(begin),
      first_(first),
      step_time_(step_time),
      nominal_(nominal),
      slowdown_(slowdown),
      tiers_(tiers) {
  HERDSIM_CHECK(step_time > Duration::zero()) << "a step of no time never ends";
  mean_cycle_ = static_cast<double>(step_time.nanoseconds());
  Duration all_blocks;
  for (const CheckpointTier& tier : tiers) {
    mean_cycle_ +=
        static_cast<double>(tier.block.nanoseconds()) / static_cast<double>(tier.period_steps);
    all_blocks += tier.block;
  }
  bracket_ = 3 + 2 * (all_blocks.nanoseconds() / step_time.nanoseconds());
}

Duration TrainingStretch::blocks_through(int64_t s) const {
  Duration sum;
  for (const CheckpointTier& tier : tiers_) {
    sum += tier.block * (s / tier.period_steps - first_ / tier.period_steps);
  }
  return sum;
}

Instant TrainingStretch::boundary(int64_t s) const {
  return begin_ + step_time_ * (s - first_) + blocks_through(std::max(first_, s - 1));
}

Instant TrainingStretch::ready(int64_t s) const {
  return begin_ + step_time_ * (s - first_) + blocks_through(s);
}

TrainingStretch::Position TrainingStretch::at(Instant now) const {
  Position position;
  position.steps = first_;
  if (now <= begin_) return position;
  // boundary() stays within all blocks once of the mean cycle, so the answer is near its quotient.
  const double elapsed = static_cast<double>((now - begin_).nanoseconds());
  const auto guess = first_ + static_cast<int64_t>(elapsed / mean_cycle_);
  // Beyond 2^53 ticks the quotient itself may be off by one.
  int64_t low = std::max(first_, guess - bracket_ - 1);
  int64_t high = guess + bracket_ + 2;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (boundary(middle) <= now ? low : high) = middle;
  }
  HERDSIM_DCHECK(boundary(low) <= now && now < boundary(low + 1)) << "step " << low;

  const int64_t done = low - first_;
  position.steps = low;
  position.nominal = nominal_ * done;
  position.slowdown = (step_time_ - nominal_) * done;
  const Instant goes_on = ready(low);
  position.stalled = blocks_through(low) - (goes_on > now ? goes_on - now : Duration::zero());
  position.in_flight = goes_on > now ? Duration::zero() : now - goes_on;
  return position;
}

std::optional<Snapshot> TrainingStretch::last_snapshot(size_t index, int64_t s) const {
  const CheckpointTier& tier = tiers_[index];
  const int64_t step = s / tier.period_steps * tier.period_steps;
  if (step <= first_) return std::nullopt;
  // The tiers before it save first.
  Instant copied = boundary(step);
  for (size_t i = 0; i <= index; ++i) {
    if (step % tiers_[i].period_steps == 0) copied = copied + tiers_[i].block;
  }
  return Snapshot{
      .step = step, .durable_at = copied + tier.persist_of(step), .slowdown = slowdown_up_to(step)};
}

}  // namespace herdsim

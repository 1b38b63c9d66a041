// The closed form of a stretch against a loop over single steps.
#include "sim/checkpoint/training_stretch.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/base/rng.h"
#include "sim/checkpoint/training_progress.h"

namespace herdsim {
namespace {

// Walks step by step and save by save to `now`.
struct PlainStretch {
  TrainingStretch::Position position;
  std::vector<std::optional<Snapshot>> last;

  PlainStretch(Instant begin, int64_t first, Duration step, Duration nominal, Duration slowdown,
               const std::vector<CheckpointTier>& tiers, Instant now)
      : last(tiers.size()) {
    position.steps = first;
    Instant clock = begin;
    if (now <= begin) return;
    while (clock + step <= now) {
      clock = clock + step;
      ++position.steps;
      position.nominal += nominal;
      position.slowdown += step - nominal;
      Instant copied = clock;
      for (size_t i = 0; i < tiers.size(); ++i) {
        if (position.steps % tiers[i].period_steps != 0) continue;
        copied = copied + tiers[i].block;
        last[i] = Snapshot{.step = position.steps,
                           .durable_at = copied + tiers[i].persist_of(position.steps),
                           .slowdown = slowdown + position.slowdown};
      }
      const Duration left = now - clock;
      const Duration blocked = copied - clock;
      position.stalled += std::min(left, blocked);
      clock = copied;
      if (clock >= now) return;
    }
    position.in_flight = now - clock;
  }
};

TEST(TrainingStretch, closed_form_equals_a_walk_over_single_steps) {
  RngStream random(11, "test/stretch", 0);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<CheckpointTier> tiers(static_cast<size_t>(below(4)));
    for (CheckpointTier& tier : tiers) {
      tier.period_steps = 1 + below(12);
      tier.block = nanoseconds(below(2) == 0 ? 0 : below(500));
      tier.persist = nanoseconds(below(900));
      tier.delta_persist = nanoseconds(below(300));
      tier.full_every = 1 + below(3);
    }
    const Instant begin = Instant::from_nanoseconds(below(5000));
    const int64_t first = below(40);
    const Duration step = nanoseconds(1 + below(200)), nominal = nanoseconds(1 + below(200));
    const Duration slowdown = nanoseconds(below(1000));
    const TrainingStretch fast(begin, first, step, nominal, slowdown, tiers);
    for (int probe = 0; probe < 40; ++probe) {
      const Instant now = Instant::from_nanoseconds(below(30'000));
      const PlainStretch plain(begin, first, step, nominal, slowdown, tiers, now);
      const TrainingStretch::Position at = fast.at(now);
      ASSERT_EQ(at.steps, plain.position.steps)
          << "trial " << trial << " now " << now.nanoseconds();
      ASSERT_EQ(at.nominal, plain.position.nominal) << trial;
      ASSERT_EQ(at.slowdown, plain.position.slowdown) << trial;
      ASSERT_EQ(at.stalled, plain.position.stalled) << trial;
      ASSERT_EQ(at.in_flight, plain.position.in_flight) << trial;
      if (now > begin) {
        ASSERT_EQ(at.nominal + at.slowdown + at.stalled + at.in_flight, now - begin) << trial;
      }
      for (size_t i = 0; i < tiers.size(); ++i) {
        const auto snapshot = fast.last_snapshot(i, at.steps);
        ASSERT_EQ(snapshot.has_value(), plain.last[i].has_value()) << trial;
        if (!snapshot) continue;
        ASSERT_EQ(snapshot->step, plain.last[i]->step) << trial;
        ASSERT_EQ(snapshot->durable_at, plain.last[i]->durable_at) << trial;
        ASSERT_EQ(snapshot->slowdown, plain.last[i]->slowdown) << trial;
      }
    }
  }
}

CheckpointPlan remote_plan(int64_t period, Duration block, Duration persist) {
  CheckpointPlan plan;
  plan.tiers.push_back({.medium = Medium::kRemote,
                        .period_steps = period,
                        .block = block,
                        .persist = persist,
                        .load = seconds(30)});
  return plan;
}

TEST(TrainingProgress, a_snapshot_serves_only_once_it_is_durable) {
  TrainingProgress progress(remote_plan(10, seconds(1), seconds(5)), seconds(2), hours(24));
  progress.begin(Instant::start(), seconds(2), Duration::zero(), false);
  // Steps 10 and 20 end at 20 s and 41 s; the second is copied at 42 s and durable at 47 s.
  const Instant early = Instant::start() + seconds(46);
  progress.close(early);
  EXPECT_EQ(progress.steps(), 22);
  progress.lose_snapshots(early, Severity::kHost);
  EXPECT_EQ(progress.restore_point().snapshot.step, 10);
  EXPECT_EQ(progress.roll_back(progress.restore_point().snapshot), seconds(24));
  EXPECT_EQ(progress.steps(), 10);

  TrainingProgress later(remote_plan(10, seconds(1), seconds(5)), seconds(2), hours(24));
  later.begin(Instant::start(), seconds(2), Duration::zero(), false);
  const Instant durable = Instant::start() + seconds(47);
  later.close(durable);
  later.lose_snapshots(durable, Severity::kDomain);
  EXPECT_EQ(later.restore_point().snapshot.step, 20);
}

TEST(TrainingProgress, memory_of_a_lost_host_is_gone_and_the_remote_store_is_not) {
  CheckpointPlan plan = remote_plan(10, Duration::zero(), Duration::zero());
  plan.tiers.push_back({.medium = Medium::kNvme, .period_steps = 2, .load = seconds(1)});
  plan.tiers.push_back({.medium = Medium::kHostMemory, .period_steps = 1, .load = seconds(3)});
  for (const auto& [severity, step] :
       {std::pair{Severity::kProcess, 17}, {Severity::kHost, 17}, {Severity::kDomain, 10}}) {
    TrainingProgress progress(plan, seconds(1), hours(24));
    progress.begin(Instant::start(), seconds(1), Duration::zero(), false);
    const Instant now = Instant::start() + milliseconds(17'500);
    progress.close(now);
    progress.lose_snapshots(now, severity);
    EXPECT_EQ(progress.restore_point().snapshot.step, step) << static_cast<int>(severity);
  }
}

TEST(TrainingProgress, distrust_goes_back_to_the_good_snapshot) {
  TrainingProgress progress(remote_plan(10, Duration::zero(), Duration::zero()), seconds(1),
                            hours(24));
  progress.begin(Instant::start(), seconds(1), Duration::zero(), false);
  const Snapshot good = progress.good_remote(Instant::start() + seconds(35));
  EXPECT_EQ(good.step, 30);
  progress.close(Instant::start() + seconds(95));
  progress.distrust_after(good);
  EXPECT_EQ(progress.restore_point().snapshot.step, 30);
}

TEST(TrainingProgress, a_suspended_store_takes_no_saves) {
  TrainingProgress progress(remote_plan(10, seconds(1), Duration::zero()), seconds(1), hours(24));
  progress.begin(Instant::start(), seconds(1), Duration::zero(), true);
  EXPECT_EQ(progress.close(Instant::start() + seconds(100)).stalled, Duration::zero());
  EXPECT_EQ(progress.steps(), 100);
  EXPECT_EQ(progress.restore_point().snapshot.step, 0);
}

}  // namespace
}  // namespace herdsim

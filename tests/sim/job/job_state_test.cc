#include "sim/job/job_state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "sim/job/condition.h"
#include "sim/job/recovery_policy.h"

namespace herdsim {
namespace {

TEST(JobState, no_pair_of_state_and_event_appears_twice) {
  std::set<std::pair<JobState, JobEvent>> seen;
  for (const Transition& row : job_transitions())
    EXPECT_TRUE(seen.insert({row.from, row.event}).second);
}

TEST(JobState, a_failure_is_possible_in_every_state_and_leads_to_detection) {
  for (size_t s = 0; s < kJobStates; ++s) {
    EXPECT_EQ(next_state(static_cast<JobState>(s), JobEvent::kFailure), JobState::kDetecting)
        << kJobStateNames[s];
  }
}

TEST(JobState, training_is_reached_again_from_every_state) {
  for (size_t s = 0; s < kJobStates; ++s) {
    std::set<JobState> reached = {static_cast<JobState>(s)};
    for (size_t round = 0; round < kJobStates; ++round) {
      for (const Transition& row : job_transitions()) {
        if (row.event != JobEvent::kFailure && reached.count(row.from)) reached.insert(row.to);
      }
    }
    EXPECT_TRUE(reached.count(JobState::kRunning)) << kJobStateNames[s];
  }
}

TEST(JobStateDeathTest, a_pair_outside_the_table_is_a_defect) {
  EXPECT_DEATH(next_state(JobState::kRunning, JobEvent::kHostsFound), "no transition");
}

TEST(RecoveryPolicy, every_row_has_its_own_name_and_phases_that_are_not_negative) {
  std::set<std::string_view> names;
  for (const RecoveryPolicy& row : recovery_policies()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    for (const double factor :
         {row.diagnosis, row.reschedule, row.start, row.init, row.warmup, row.in_place_start}) {
      EXPECT_GE(factor, 0) << row.name;
    }
  }
}

TEST(Condition, the_slowest_part_sets_the_pace_and_stands_for_all_others) {
  const PaceOfTheSlowest model(
      {.nominal = seconds(10), .data_parallel = 128, .network_share = 0.2});
  EXPECT_EQ(model.step_time({}), seconds(10));
  const Condition one{.slow = {{.gpu = 5, .compute_permille = 500}}};
  EXPECT_EQ(model.step_time(one), seconds(18));
  const Condition two{
      .slow = {{.gpu = 1, .compute_permille = 900}, {.gpu = 7, .compute_permille = 500}}};
  EXPECT_EQ(model.step_time(two), model.step_time(one));
  EXPECT_EQ(model.canonical(two), model.canonical({.slow = {{.gpu = 0, .compute_permille = 500}}}));
  // A lost NIC leaves 7 of 8 rails: a fifth of the step takes an eighth-seventh as long.
  EXPECT_NEAR(model.step_time({.slow = {{.gpu = 3, .nic_permille = 0}}}).seconds(), 8 + 2 * 8.0 / 7,
              1e-8);
  EXPECT_NEAR(model.step_time({.replicas_away = 64}).seconds(), 20, 1e-8);
}

class CountingModel final : public StepTimeModel {
 public:
  Duration step_time(const Condition&) const override {
    ++calls;
    return seconds(1);
  }
  mutable int calls = 0;
};

TEST(Condition, a_step_is_simulated_once_a_condition) {
  const CountingModel model;
  MemoisedStepTime memo(model);
  for (int i = 0; i < 100; ++i) memo.step_time({.clock_permille = 990 + i % 4});
  EXPECT_EQ(model.calls, 4);
  EXPECT_EQ(memo.distinct_conditions(), 4u);
}

// Returns only once two simulations are under way, or after ten seconds in vain.
class NeedsCompany final : public StepTimeModel {
 public:
  Duration step_time(const Condition&) const override {
    std::unique_lock lock(mutex_);
    ++inside_;
    arrived_.notify_all();
    const bool company =
        arrived_.wait_for(lock, std::chrono::seconds(10), [&] { return inside_ >= 2; });
    return company ? seconds(1) : seconds(2);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  mutable int inside_ = 0;
};

TEST(Condition, threads_simulate_different_conditions_side_by_side) {
  const NeedsCompany model;
  const MemoisedStepTime memo(model);
  std::vector<Duration> times(2);
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < 2; ++i) {
      pool.emplace_back(
          [&, i] { times[static_cast<size_t>(i)] = memo.step_time({.clock_permille = 900 + i}); });
    }
  }
  EXPECT_EQ(times[0], seconds(1));
  EXPECT_EQ(times[1], seconds(1));
}

}  // namespace
}  // namespace herdsim

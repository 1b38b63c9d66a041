// Laws of every campaign: whatever fails, however it recovers.
#include "sim/job/campaign.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <string_view>

#include "sim/models/young_daly.h"
#include "sim/reliability/reliability_base.h"
#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

void expect_account_adds_up(const RunResult& result, std::string_view what) {
  for (const ReplicaResult& replica : result.replicas) {
    const Duration sum =
        std::accumulate(replica.account.begin(), replica.account.end(), Duration::zero());
    EXPECT_EQ(sum, replica.horizon) << what;
    for (size_t i = 0; i < kRunTerms; ++i)
      EXPECT_GE(replica.account[i], Duration::zero()) << what << " " << kRunTermNames[i];
    EXPECT_GE(replica.steps, 0) << what;
  }
}

TEST(Campaign, the_account_sums_to_the_horizon_under_every_policy_and_base) {
  for (const RecoveryPolicy& recovery : recovery_policies()) {
    for (const CheckpointPolicy& checkpoint : checkpoint_policies()) {
      CampaignRequest request = small_request();
      request.recovery.policy = recovery.name;
      request.checkpoint.policy = checkpoint.name;
      request.recovery.spares = 6;
      request.recovery.technicians = 4;
      request.reliability.evict_slow_after_s = 7200;
      request.reliability.restarts_can_fail = checkpoint.name != "sync";
      expect_account_adds_up(run(request),
                             std::string(recovery.name) + " with " + std::string(checkpoint.name));
    }
  }
  for (const ReliabilityBase& base : reliability_bases()) {
    CampaignRequest request = small_request();
    request.reliability.base = base.name;
    expect_account_adds_up(run(request), base.name);
  }
}

TEST(Campaign, is_the_same_for_any_number_of_threads_and_any_other_replicas) {
  CampaignRequest request = small_request();
  request.run.replicas = 12;
  const RunResult one = run(request, 1);
  EXPECT_EQ(one.fingerprint(), run(request, 2).fingerprint());
  EXPECT_EQ(one.fingerprint(), run(request, 7).fingerprint());
  request.run.replicas = 5;
  const RunResult fewer = run(request, 3);
  for (size_t i = 0; i < fewer.replicas.size(); ++i)
    EXPECT_EQ(fewer.replicas[i].account, one.replicas[i].account) << i;
  request.seed = 2;
  EXPECT_NE(run(request).fingerprint(), fewer.fingerprint());
}

TEST(Campaign, a_change_of_policy_leaves_the_failures_as_they_are) {
  CampaignRequest request = small_request();
  const RunResult base = run(request);
  request.recovery.policy = "warm-standby";
  request.checkpoint.policy = "tiered";
  const RunResult other = run(request);
  for (size_t i = 0; i < base.replicas.size(); ++i) {
    for (size_t c = 0; c < base.class_names.size(); ++c) {
      if (base.class_names[c] == "silent_data_corruption")
        continue;  // counted when noticed, which may be after the end
      EXPECT_EQ(base.replicas[i].by_class[c], other.replicas[i].by_class[c]) << base.class_names[c];
    }
  }
}

TEST(Campaign, halving_a_class_keeps_a_subset_of_its_events) {
  CampaignRequest request = llama3_request(20);
  const RunResult base = run(request);
  request.reliability.classes = {{.name = "faulty_gpu", .scale = 0.5}};
  const RunResult half = run(request);
  int64_t all = 0, kept = 0;
  for (size_t i = 0; i < base.replicas.size(); ++i) {
    all += base.replicas[i].by_class[0];
    kept += half.replicas[i].by_class[0];
    EXPECT_LE(half.replicas[i].by_class[0], base.replicas[i].by_class[0]);
    for (size_t c = 1; c < base.class_names.size(); ++c) {
      if (base.class_names[c] != "silent_data_corruption") {
        EXPECT_EQ(half.replicas[i].by_class[c], base.replicas[i].by_class[c])
            << base.class_names[c];
      }
    }
  }
  // Binomial with about 2,960 trials: 5 sigma is 4.6 %.
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(all), 0.5, 0.046);
}

TEST(Campaign, nothing_failing_is_all_training_but_for_saves) {
  CampaignRequest request = llama3_request(1);
  request.reliability.base = "none";
  const RunResult result = run(request);
  const auto account = result.time_account_seconds();
  const double stall = account[static_cast<size_t>(RunTerm::kCheckpointStall)];
  EXPECT_NEAR(result.effective_training_time(), 1 - stall / result.mean_horizon_seconds(), 1e-12);
  // 0.323 s in every 48 steps of 6.2 s.
  EXPECT_NEAR(stall / result.mean_horizon_seconds(), 0.3229 / (48 * 6.2 + 0.3229), 1e-5);
  EXPECT_EQ(result.unexpected() + result.planned(), 0);
}

TEST(Campaign, more_failures_and_longer_restarts_never_help) {
  double last = 1;
  for (const double scale : {0.25, 0.5, 1.0, 2.0, 4.0}) {
    CampaignRequest request = llama3_request(40);
    request.reliability.rate_scale = scale;
    const double now = run(request).effective_training_time();
    EXPECT_LT(now, last) << scale;
    last = now;
  }
  last = 1;
  for (const double reschedule : {0.0, 180.0, 1800.0}) {
    CampaignRequest request = llama3_request(40);
    request.recovery.phases.reschedule_s = reschedule;
    const double now = run(request).effective_training_time();
    EXPECT_LT(now, last) << reschedule;
    last = now;
  }
}

TEST(Campaign, a_target_of_tokens_ends_with_exactly_its_steps) {
  CampaignRequest request = llama3_request(4);
  request.run.days = 0;
  request.run.tokens = 1000.5 * 2048 * 8192;
  const RunResult result = run(request);
  for (const ReplicaResult& replica : result.replicas) EXPECT_EQ(replica.steps, 1001);
  expect_account_adds_up(result, "tokens");
  EXPECT_TRUE(result.warnings.empty());
}

TEST(Campaign, a_target_that_cannot_be_reached_is_given_up_and_said) {
  CampaignRequest request = llama3_request(1);
  request.run.days = 0;
  request.run.tokens = 1e5 * 2048 * 8192;
  request.checkpoint.policy = "none";
  const RunResult result = run(request);
  ASSERT_EQ(result.warnings.size(), 2u);
  EXPECT_NE(result.warnings[1].find("run.tokens"), std::string::npos);
}

TEST(Campaign, removing_stragglers_gives_their_slowdown_back) {
  CampaignRequest request = llama3_request(10);
  request.reliability.slow = {{.name = "slow_hosts"}};
  const CampaignSpec spec = resolve(request);
  const PaceOfTheSlowest model({.nominal = request.nominal_step, .data_parallel = 128});
  const double with = run_campaign(spec, model, {}).effective_training_time();
  const double without =
      run_campaign(without_stragglers(spec), model, {}).effective_training_time();
  // One host in ten slow by 10 % on nine tenths of the step: the whole job is.
  EXPECT_NEAR(with / without, 1 / 1.09, 0.01);
  RunResult ranked = run_campaign(spec, model, {});
  rank_contributions(spec, model, {}, ranked);
  ASSERT_TRUE(ranked.without_stragglers);
  EXPECT_EQ(ranked.without_stragglers->name, "slow_hosts");
  EXPECT_DOUBLE_EQ(ranked.without_stragglers->if_changed, without);
  EXPECT_NEAR(ranked.without_stragglers->gain, without - with, 1e-12);
  request.reliability.evict_slow_after_s = 3600;
  EXPECT_GT(run(request).effective_training_time(), without - 0.01);
}

TEST(Campaign, a_checksum_leaves_wrong_arithmetic_undetected) {
  CampaignRequest request = llama3_request(100);
  request.reliability.corruption_detectors = {"transfer_checksum"};
  const RunResult blind = run(request);
  double undetected = 0;
  for (const ReplicaResult& replica : blind.replicas)
    undetected += static_cast<double>(replica.undetected_corruptions) / 100;
  // 90 % of six, standard error 0.23: 5 sigma.
  EXPECT_NEAR(undetected, 5.4, 1.2);
  request.reliability.corruption_detectors = {"loss_watch", "block_recompute"};
  request.seed = 1;
  const RunResult both = run(request);
  request.reliability.corruption_detectors = {"loss_watch"};
  const RunResult watch = run(request);
  const auto lost = [](const RunResult& r) {
    return r.time_account_seconds()[static_cast<size_t>(RunTerm::kLostWork)];
  };
  EXPECT_LT(lost(both), 0.7 * lost(watch));
  EXPECT_GT(both.time_account_seconds()[static_cast<size_t>(RunTerm::kSlowdown)],
            watch.time_account_seconds()[static_cast<size_t>(RunTerm::kSlowdown)]);
}

TEST(Campaign, a_corruption_costs_its_latency_and_the_way_back) {
  // Form 7: latency + D/2, and half a save's delay more or less, of steps; 300 replicas of 20
  // events, whose latencies have a standard deviation of 2.9 times their mean: 4.5 sigma is 17 %.
  CampaignRequest request = llama3_request(300);
  request.reliability.base = "none";
  request.reliability.classes = {{.name = "silent_data_corruption", .scale = 20.0 / 6}};
  const RunResult result = run(request);
  const double lost = result.time_account_seconds()[static_cast<size_t>(RunTerm::kLostWork)];
  EXPECT_NEAR(lost / result.interruptions(0) / corruption_loss({.interval = 300}, 14'400), 1, 0.17);
}

TEST(Campaign, rates_follow_the_load) {
  CampaignRequest request = llama3_request(40);
  request.reliability.base = "rsc-1";
  request.recovery.spares = 2048;
  const RunResult always = run(request);
  request.reliability.failure_rate_while_down = 0;
  const RunResult never_down = run(request);
  request.reliability.restarts_can_fail = false;
  request.reliability.failure_rate_while_down = 1;
  const RunResult resting = run(request);
  EXPECT_EQ(never_down.fingerprint(), resting.fingerprint());
  // Of all failures, as many strike while the job is down as it is down; 5 sigma of 28,000 counts.
  const double up = always.kept_step_share() +
                    always.time_account_seconds()[static_cast<size_t>(RunTerm::kLostWork)] /
                        always.mean_horizon_seconds();
  EXPECT_NEAR(never_down.unexpected() / always.unexpected(), up, 0.04);
  EXPECT_GT(never_down.effective_training_time(), always.effective_training_time());
}

// A machine of which any slow part makes the step shorter.
class FasterWhereSlow final : public StepTimeModel {
 public:
  Duration step_time(const Condition& condition) const override {
    return condition == Condition{} ? milliseconds(6'200) : milliseconds(6'199);
  }
};

TEST(Campaign, a_slow_machine_is_never_faster_than_a_sound_one) {
  const CampaignRequest request = small_request();
  const RunResult result = run_campaign(resolve(request), FasterWhereSlow(), {});
  expect_account_adds_up(result, "faster where slow");
}

TEST(Campaign, a_scale_multiplies_episodes_above_1_as_below) {
  double last = 0;
  for (const double scale : {0.25, 1.0, 4.0, 16.0}) {
    CampaignRequest request = llama3_request(4);
    request.run.days = 20;
    request.reliability.base = "none";
    request.reliability.slow = {
        {.name = "fail_slow_network", .scale = scale, .rate_per_hour = 0.05}};
    const double slowed =
        run(request).time_account_seconds()[static_cast<size_t>(RunTerm::kSlowdown)];
    EXPECT_GT(slowed, 2 * last) << scale;
    last = slowed;
  }
}

}  // namespace
}  // namespace herdsim

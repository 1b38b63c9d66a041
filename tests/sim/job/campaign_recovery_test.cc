// How policies of recovery, spares, checks of hosts and kept copies move the effective training time.
#include "sim/job/campaign.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "sim/models/young_daly.h"
#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

TEST(Campaign, policies_rank_as_published) {
  const auto effective = [](std::string_view recovery, std::string_view checkpoint) {
    CampaignRequest request = llama3_request(40);
    request.recovery.policy = recovery;
    request.checkpoint.policy = checkpoint;
    return run(request).effective_training_time();
  };
  const double base = effective("restart-with-spares", "async");
  EXPECT_GT(effective("warm-standby", "async"), base + 0.01);
  EXPECT_GT(effective("replica-level", "async"), effective("warm-standby", "async"));
  EXPECT_GT(effective("restart-with-spares", "in-memory"), base + 0.01);
  EXPECT_GT(effective("restart-with-spares", "just-in-time"), base + 0.01);
  EXPECT_LT(effective("restart-with-spares", "sync"), base);
  EXPECT_LT(effective("restart-with-spares", "none"), 0.1);
}

TEST(Campaign, replica_level_recovery_costs_its_stall_and_a_share_of_the_restart) {
  // Form 6 at 16,384 GPUs and one failure in an hour: s = 10 + 120 + 30 s, u the rest of a full
  // restart.
  CampaignRequest request = llama3_request(40);
  request.reliability.base = "none";
  request.reliability.classes = {{.name = "cpu", .rate_per_hour = 1.0 / 16'384}};
  request.recovery.spares = 400;
  request.recovery.policy = "replica-level";
  const RunResult result = run(request);
  const double u = 180 + 60 + 30 + 60 + 129;
  const double form = ettr_replica_level({.mtbf = 3600, .restart = u}, 160, 128);
  // Half a step and the saves come on top; hosts coming back cost a second regroup of 30 s.
  const double expected = form - (3.1 + 30) / 3600 - 0.0011;
  EXPECT_NEAR(result.effective_training_time(), expected, 0.006);
}

TEST(Campaign, spares_below_the_hosts_in_repair_make_the_job_wait) {
  // 13 hosts away in the mean: P(X > 26) is 0.1 %.
  double last = 1e12;
  for (const int64_t spares : {8, 14, 20, 26}) {
    CampaignRequest request = llama3_request(20);
    request.recovery.spares = spares;
    const double waiting =
        run(request).time_account_seconds()[static_cast<size_t>(RunTerm::kWaitingForSpares)];
    EXPECT_LE(waiting, last) << spares;
    last = waiting;
  }
  EXPECT_LT(last, 0.002 * 54 * 86'400);
}

TEST(Campaign, few_kept_snapshots_lose_more_to_corruption) {
  CampaignRequest request = llama3_request(60);
  const double all = run(request).effective_training_time();
  request.checkpoint.keep_last = 3;
  EXPECT_LT(run(request).effective_training_time(), all - 0.002);
}

// Where every host comes from repair, each failure is followed by another with the chance q that
// its host is bad: 1 / (1 - q) times as many.
TEST(Campaign, hosts_that_pass_the_check_unmended_fail_again_as_the_form_says) {
  CampaignRequest request = llama3_request(40);
  request.reliability.base = "rsc-1";
  request.recovery.policy = "wait-for-repair";
  request.recovery.refail_after_s = 600;
  request.recovery.unmended_share = 0.4;
  request.reliability.classes = {{.name = "node_failure", .repair_s = 600}};
  double failures = 0, again = 0;
  for (const double recall : {0.0, 0.7, 1.0}) {
    request.recovery.health_check_recall = recall;
    const RunResult result = run(request);
    const double all = result.unexpected(), repeated = result.refailures();
    const double q = 0.4 * (1 - recall) / (0.4 * (1 - recall) + 0.6);
    // Of some thousand failures, those before the last repair; 5 sigma: below 1e-6 a run.
    const double n = all * static_cast<double>(result.replicas.size());
    EXPECT_NEAR(repeated / all, q, 5 * std::sqrt(q * (1 - q) / n) + 0.005) << recall;
    if (recall == 0) failures = all, again = repeated;
  }
  EXPECT_GT(again, 0.3 * failures);
}

TEST(Campaign, a_better_check_never_costs_more_failures_and_a_false_alarm_costs_hosts) {
  CampaignRequest request = llama3_request(20);
  request.recovery.unmended_share = 0.4;
  request.recovery.spares = 8;
  double last = 1e9;
  for (const double recall : {0.0, 0.5, 1.0}) {
    request.recovery.health_check_recall = recall;
    const double again = run(request).refailures();
    EXPECT_LT(again, last) << recall;
    last = again;
  }
  EXPECT_EQ(last, 0);
  const auto waiting = [&](double false_alarm) {
    request.recovery.health_check_false_alarm = false_alarm;
    const RunResult result = run(request);
    return result.time_account_seconds()[static_cast<size_t>(RunTerm::kWaitingForSpares)];
  };
  const double none = waiting(0);
  EXPECT_GT(waiting(0.6), none);
}

TEST(Campaign, a_copy_in_hbm_saves_the_steps_that_the_tiers_below_it_lose) {
  const auto lost = [](const CampaignSpec& spec) {
    const PaceOfTheSlowest pace({.nominal = spec.request.nominal_step});
    const RunResult result = run_campaign(spec, pace, {.threads = 2});
    return result.time_account_seconds()[static_cast<size_t>(RunTerm::kLostWork)];
  };
  CampaignSpec with = resolve(tiered_request("local-rollback"));
  ASSERT_EQ(with.checkpoints.tiers.front().medium, Medium::kHbmCopy);
  CampaignSpec without = with;
  drop_hbm_copies(without.checkpoints);
  EXPECT_EQ(without.checkpoints.tiers.size() + 1, with.checkpoints.tiers.size());
  EXPECT_EQ(without.checkpoints.hbm_a_gpu, Bytes(0));
  EXPECT_LT(lost(with), lost(without));
}

}  // namespace
}  // namespace herdsim

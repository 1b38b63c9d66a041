// Laws of every campaign: whatever fails, however it recovers.
#include "sim/job/campaign.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "sim/models/young_daly.h"
#include "sim/reliability/reliability_base.h"
#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

CampaignRequest small_request() {
  CampaignRequest request = llama3_request(3);
  request.run.days = 20;
  request.reliability.slow = {{.name = "fail_slow_network"}, {.name = "slow_hosts"}};
  request.reliability.rate_scale = 3;
  return request;
}

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

// Links and ToRs alone, a hundred times as often as published.
CampaignRequest network_request(int64_t rails, int64_t planes, std::string_view policy) {
  CampaignRequest request = llama3_request(4);
  request.reliability.base = "hpn-links";
  request.reliability.rate_scale = 100;
  request.recovery.spares = 2048;
  request.recovery.policy = policy;
  request.machine.rails = rails;
  request.machine.planes = planes;
  return request;
}

TEST(Campaign, traffic_moves_to_other_ports_and_rails_where_the_fabric_has_them) {
  const auto stops = [](int64_t rails, int64_t planes, std::string_view policy) {
    const RunResult result = run(network_request(rails, planes, policy));
    return std::pair(result.interruptions(0), result.interruptions(1));
  };
  const auto racks = stops(1, 1, "restart-with-spares");
  EXPECT_GT(racks.first, 1000);
  EXPECT_GT(racks.second, 50);
  // A rack's ToR cuts its hosts off whatever the policy; one of a rail leaves them the other rails.
  EXPECT_EQ(stops(1, 1, "rail-failover"), std::pair(0.0, racks.second));
  EXPECT_EQ(stops(8, 1, "rail-failover"), std::pair(0.0, 0.0));
  EXPECT_EQ(stops(8, 1, "restart-with-spares"), racks);
  EXPECT_EQ(stops(8, 2, "restart-with-spares"), std::pair(0.0, 0.0));
  // What does not stop the job slows it down, and is no failure of the forecast either.
  const RunResult ports = run(network_request(8, 2, "restart-with-spares"));
  EXPECT_GT(ports.time_account_seconds()[static_cast<size_t>(RunTerm::kSlowdown)], 0);
  EXPECT_EQ(ports.expected_rate_per_hour, 0);
  const RunResult rail = run(network_request(1, 1, "rail-failover"));
  EXPECT_NEAR(rail.expected_rate_per_hour * 54 * 24 / racks.second, 1, 0.3);
}

TEST(Campaign, a_dead_tor_slows_every_nic_under_it) {
  CampaignRequest request = network_request(8, 2, "restart-with-spares");
  request.reliability.classes = {{.name = "nic_tor_link", .scale = 0}};
  class Widest final : public StepTimeModel {
   public:
    Duration step_time(const Condition& condition) const override {
      for (const SlowPart& part : condition.slow) EXPECT_EQ(part.nic_permille, 500);
      if (condition.slow.size() > most) most = condition.slow.size();
      return seconds(6);
    }
    mutable size_t most = 0;
  };
  const Widest model;
  request.run.replicas = 1;
  run_campaign(resolve(request), model, {});
  EXPECT_GE(model.most, 16U);
  EXPECT_EQ(model.most % 16, 0U);
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

TEST(Campaign, the_trace_covers_the_horizon_without_gaps) {
  CampaignRequest request = small_request();
  const CampaignSpec spec = resolve(request);
  CampaignTrace trace;
  const PaceOfTheSlowest model({.nominal = request.nominal_step, .data_parallel = 128});
  const RunResult traced = run_campaign(spec, model, {.trace = &trace});
  ASSERT_FALSE(trace.phases.empty());
  Instant at = Instant::start();
  for (const CampaignTrace::Phase& phase : trace.phases) {
    EXPECT_EQ(phase.begin, at);
    at = phase.end;
  }
  EXPECT_EQ(at - Instant::start(), traced.replicas[0].horizon);
  EXPECT_EQ(traced.fingerprint(), run(request).fingerprint());
}

// A job that is disturbed often, recorded in a twentieth of the room.
TEST(Campaign, a_full_trace_is_thinned_and_covers_the_horizon) {
  CampaignRequest request = small_request();
  request.run.replicas = 1;
  const CampaignSpec spec = resolve(request);
  const PaceOfTheSlowest pace({.nominal = spec.request.nominal_step});
  CampaignTrace all, few;
  run_campaign(spec, pace, {.trace = &all});
  few.most_entries = all.entries() / 20;
  run_campaign(spec, pace, {.trace = &few});
  EXPECT_EQ(all.thinning(), "");
  EXPECT_EQ(few.thinning().substr(0, 17), "thinned: of every");
  EXPECT_LE(few.entries(), few.most_entries + 1);
  EXPECT_GT(few.entries(), few.most_entries / 8);
  ASSERT_FALSE(few.phases.empty());
  EXPECT_EQ(few.phases.front().begin, Instant::start());
  EXPECT_EQ(few.phases.back().end, all.phases.back().end);
  for (size_t i = 1; i < few.phases.size(); ++i)
    EXPECT_EQ(few.phases[i].begin, few.phases[i - 1].end) << i;
  // Nothing is forgotten: shown or counted. The costliest of all is shown.
  const auto counted = [](const CampaignTrace& trace) {
    int64_t count = 0;
    for (const CampaignTrace::Incident& incident : trace.incidents) count += 1 + incident.like_it;
    return count;
  };
  EXPECT_EQ(counted(few), counted(all));
  const auto longest = [](const CampaignTrace& trace) {
    Duration most;
    for (const CampaignTrace::Incident& incident : trace.incidents)
      most = std::max(most, incident.down + incident.lost_work);
    return most;
  };
  EXPECT_EQ(longest(few), longest(all));
  int64_t saves = 0, all_saves = 0;
  for (const CampaignTrace::Saves& s : few.saves) saves += s.count;
  for (const CampaignTrace::Saves& s : all.saves) all_saves += s.count;
  EXPECT_EQ(saves, all_saves);
}

TEST(CampaignSpec, every_fault_of_a_request_is_named_at_once) {
  CampaignRequest request = llama3_request(1);
  request.reliability.rate_scale = -1;
  request.run.days = 0;
  request.recovery.spares = -1;
  request.checkpoint.policy = "asinc";
  request.recovery.policy = "restart-with-spare";
  request.reliability.classes = {{.name = "faulty_gpo", .rate_per_hour = 1},
                                 {.name = "nic", .rate_per_hour = -2}};
  try {
    resolve(request);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    std::set<std::string> fields;
    for (const Fault& fault : error.faults()) fields.insert(fault.field);
    EXPECT_EQ(fields, (std::set<std::string>{"reliability.rate_scale", "run.days",
                                             "recovery.spares", "checkpoint.policy",
                                             "recovery.policy", "reliability.classes[0].name",
                                             "reliability.classes[1].rate_per_hour"}));
    const std::string text = error.what();
    EXPECT_NE(text.find("did you mean \"async\""), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean \"faulty_gpu\""), std::string::npos) << text;
  }
}

TEST(CampaignSpec, moves_and_events_beyond_what_can_be_simulated_are_refused) {
  const auto message_of = [](const CampaignRequest& request) -> std::string {
    try {
      run(request);
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  CampaignRequest request = llama3_request(1);
  request.checkpoint.storage.copy_out_gb_per_s_per_gpu = 1e-300;
  EXPECT_NE(message_of(request).find("checkpoint.storage: a save to the"), std::string::npos);
  request = llama3_request(1);
  request.checkpoint.storage.measured_load_s = 1e10;
  EXPECT_NE(message_of(request).find("checkpoint.storage: a load from the"), std::string::npos);
  request = llama3_request(1);
  request.reliability.slow = {{.name = "fail_slow_network", .rate_per_hour = 1000}};
  EXPECT_NE(message_of(request).find("reliability.slow.fail_slow_network.rate_per_hour"),
            std::string::npos);
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

TEST(CampaignSpec, a_save_longer_than_its_interval_warns) {
  CampaignRequest request = llama3_request(1);
  request.checkpoint.interval_s = 20;
  const CampaignSpec spec = resolve(request);
  ASSERT_EQ(spec.warnings.size(), 2u);
  EXPECT_NE(spec.warnings[0].find("saves queue"), std::string::npos);
  EXPECT_NE(spec.warnings[1].find("the store of 240 PB holds"), std::string::npos);
}

TEST(CampaignSpec, interval_rules_follow_their_forms) {
  CampaignRequest request = llama3_request(30);
  request.checkpoint.storage.copy_out_gb_per_s_per_gpu = 0.0323;  // 10 s blocked
  request.checkpoint.rule = "young";
  const CampaignSpec young = resolve(request);
  EXPECT_NEAR(static_cast<double>(young.checkpoints.tiers[0].period_steps) * 6.2, 472, 6.2);
  const double at_young = run(request).effective_training_time();
  request.checkpoint.rule = "adaptive";
  EXPECT_NEAR(run(request).effective_training_time(), at_young, 0.003);
  request.checkpoint.rule = "fixed";
  for (const double interval : {100.0, 2500.0}) {
    request.checkpoint.interval_s = interval;
    EXPECT_LT(run(request).effective_training_time(), at_young) << interval;
  }
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

CampaignRequest tiered_request(std::string_view recovery) {
  CampaignRequest request = llama3_request(6);
  request.checkpoint.policy = "tiered";
  request.recovery.policy = recovery;
  return request;
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

TEST(CampaignSpec, a_copy_in_hbm_needs_room_and_processes_that_live_on) {
  CampaignRequest request = tiered_request("local-rollback");
  const Bytes needed = resolve(request).checkpoints.hbm_a_gpu;
  const int64_t shard = request.checkpoint.bytes.count() / request.machine.gpus;
  EXPECT_NEAR(static_cast<double>(needed.count()), 2.0 * static_cast<double>(shard), 2);
  request.hbm_free = needed;
  EXPECT_NO_THROW(resolve(request));
  request.hbm_free = needed - Bytes(1);
  EXPECT_THROW(resolve(request), SpecError);
  request.recovery.policy = "restart-with-spares";
  const CampaignSpec spec = resolve(request);
  EXPECT_EQ(spec.checkpoints.tiers.front().medium, Medium::kHostMemory);
  ASSERT_FALSE(spec.warnings.empty());
  EXPECT_NE(spec.warnings.front().find("keeps nothing in HBM"), std::string::npos);
}

}  // namespace
}  // namespace herdsim

// Flows between a job and its store beside its step: which links they share, and what that costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "tests/sim/executor/planned_job.h"

namespace herdsim {
namespace {

using Sets = std::vector<std::string>;

Sets with(const Sets& sets, const Sets& more) {
  Sets all = sets;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// 64 GPUs on 8 hosts that save 64 GB as fast as the links let them.
const Sets kSaving = {"other_traffic.saving=true", "checkpoint.bytes=64000000000",
                      "checkpoint.storage.write_gigabytes_per_second=1000000",
                      "checkpoint.storage.client_gigabytes_per_second=1000"};
const Sets kOverTraining = {"cluster.storage_network.path=TRAINING"};
const Sets kReading = {"other_traffic.loading=true",
                       "checkpoint.storage.data_loading_gigabytes_per_second=20",
                       "checkpoint.storage.read_gigabytes_per_second=1000000",
                       "checkpoint.storage.client_gigabytes_per_second=1000"};

StepResult step_of(const Sets& sets, bool fold = true,
                   const SmallPlan& plan = {.tp = 2, .pp = 2, .dp = 16}) {
  return simulate_step(load_scenario(kSmallJobBase, small_job(plan, sets)), {.fold = fold}).result;
}

double seconds_of(const StepResult& step, const std::string& what) {
  for (const StorageFlow& flow : step.storage) {
    if (flow.what == what) return flow.took.seconds();
  }
  return 0;
}

TEST(StorageFlows, over_a_frontend_of_their_own_cost_the_step_nothing) {
  const StepResult plain = step_of({}), saving = step_of(with(kSaving, kReading));
  EXPECT_TRUE(plain.storage.empty());
  ASSERT_EQ(saving.storage.size(), 2u);
  EXPECT_EQ(saving.step_time, plain.step_time);
  EXPECT_EQ(saving.without_storage, plain.step_time);
  EXPECT_EQ(saving.fingerprint(), plain.fingerprint());
}

// 8 GB a host: over its port of 800 Gb/s, of which 97 % are left; over its client; over eight
// servers; to what disks sustain.
TEST(StorageFlows, take_as_long_as_the_narrowest_link_says) {
  EXPECT_NEAR(seconds_of(step_of(kSaving), "save"), 8 / (100 * 0.97), 1e-6);
  EXPECT_NEAR(
      seconds_of(step_of(with(kSaving, {"checkpoint.storage.client_gigabytes_per_second=5"})),
                 "save"),
      8 / 5.0, 1e-6);
  EXPECT_NEAR(seconds_of(step_of(with(kSaving, {"cluster.storage_network.servers=4"})), "save"),
              64 / (4 * 12.5 * 0.97), 1e-6);
  EXPECT_NEAR(seconds_of(step_of(with(kSaving, {"cluster.storage_network.hosts_per_switch=4",
                                                "cluster.storage_network.oversubscription=4"})),
                         "save"),
              8 / (100 * 0.97 / 4), 1e-6);
  const Sets disks = with(kSaving, {"checkpoint.storage.shared_gigabytes_per_second=10"});
  EXPECT_NEAR(seconds_of(step_of(with(disks, {"checkpoint.storage.burst_factor=1"})), "save"), 6.4,
              1e-6);
  EXPECT_NEAR(seconds_of(step_of(with(disks, {"checkpoint.storage.burst_factor=4"})), "save"), 1.6,
              1e-6);
  // A second at 40 GB/s, and the rest at 10.
  EXPECT_NEAR(seconds_of(step_of(with(disks, {"checkpoint.storage.burst_factor=4",
                                              "checkpoint.storage.burst_s=1"})),
                         "save"),
              1 + 2.4, 1e-6);
  EXPECT_NEAR(seconds_of(step_of(with(disks, {"checkpoint.storage.burst_factor=1",
                                              "checkpoint.storage.write_amplification=1.67"})),
                         "save"),
              6.4 * 1.67, 1e-5);
}

// Whenever a save begins, credit that nobody used is there: a second at 40 GB/s, and the rest
// at 10. What data loaders take of the sustained rate before does not fill the bucket any further.
TEST(StorageFlows, burst_with_the_credit_that_is_left) {
  const Sets disks =
      with(kSaving, {"checkpoint.storage.shared_gigabytes_per_second=10",
                     "checkpoint.storage.burst_factor=4", "checkpoint.storage.burst_s=1"});
  for (const char* begins : {"0", "0.5", "5", "1000"}) {
    const Sets later = with(disks, {std::string("other_traffic.save_begins_s=") + begins});
    EXPECT_NEAR(seconds_of(step_of(later), "save"), 1 + 2.4, 1e-6) << begins;
  }
  // A read of 20 GB/s in the time of a step takes half of its credit, 30 GB, and more before the
  // save begins.
  const Sets reading = with(with(disks, kReading), {"other_traffic.save_begins_s=1000"});
  const StepResult both = step_of(reading);
  EXPECT_NEAR(seconds_of(both, "save"), 1 + 2.4, 1e-6) << "after a rest";
  const double read_gb = static_cast<double>(both.storage[1].bytes.count()) * 1e-9;
  const double all = step_of(with(disks, kReading)).storage.front().took.seconds();
  EXPECT_NEAR(all, 1 + (64 + read_gb - 40) / 10, 1e-5)
      << "they share the peak and what is sustained";
}

const TierUse* tier_of(const StepResult& step, const std::string& name) {
  for (const TierUse& tier : step.tiers) {
    if (tier.tier == name) return &tier;
  }
  return nullptr;
}

// A save of 64 GB that ends within the step, over 8 frontend ports and as many servers, to disks
// that move 1.5 bytes for each; and the next batch back over the same ports.
TEST(StorageFlows, are_part_of_what_links_carry) {
  const Sets sets = with(with(kSaving, kReading), {"cluster.storage_network.servers=8",
                                                   "checkpoint.storage.write_amplification=1.5"});
  for (const bool fold : {true, false}) {
    const StepResult step = step_of(sets, fold);
    ASSERT_LT(seconds_of(step, "save"), step.step_time.seconds());
    const double read_gb = static_cast<double>(step.storage[1].bytes.count()) * 1e-9;
    const std::map<std::string, std::pair<int64_t, double>> links_and_gb = {
        {"frontend", {16, 64 + read_gb}},
        {"storage", {2, 64 + read_gb}},
        {"disks", {1, 96 + read_gb}}};
    for (const auto& [name, expected] : links_and_gb) {
      const TierUse* tier = tier_of(step, name);
      ASSERT_NE(tier, nullptr) << name;
      EXPECT_EQ(tier->links, expected.first) << name;
      EXPECT_LE(tier->highest_use, 1) << name;
      double carried = 0;
      std::set<std::string> labels;
      for (const LinkUse& use : step.links) {
        if (use.tier != name) continue;
        carried += static_cast<double>(use.carried.count() * use.links) * 1e-9;
        for (const LinkUse::Load& load : use.loads) labels.insert(load.transfer);
      }
      EXPECT_NEAR(carried, expected.second, 1e-6) << name;
      EXPECT_EQ(labels, (std::set<std::string>{"save", "read"})) << name;
    }
  }
  // Only what passes while the step runs counts: 5 GB/s of each of 8 clients.
  const StepResult slow =
      step_of(with(kSaving, {"checkpoint.bytes=640000000000000",
                             "checkpoint.storage.client_gigabytes_per_second=5"}));
  const auto disks = std::find_if(slow.links.begin(), slow.links.end(),
                                  [](const LinkUse& use) { return use.tier == "disks"; });
  ASSERT_NE(disks, slow.links.end());
  EXPECT_NEAR(static_cast<double>(disks->carried.count()) * 1e-9, 40 * slow.step_time.seconds(),
              1e-3);
}

TEST(StorageFlows, are_rows_and_counters_of_a_trace) {
  const Scenario scenario = load_scenario(
      kSmallJobBase, small_job({.tp = 2, .pp = 2, .dp = 16},
                               with(kSaving, {"checkpoint.storage.shared_gigabytes_per_second=10",
                                              "checkpoint.storage.burst_factor=4",
                                              "checkpoint.storage.burst_s=1"})));
  const StepTrace trace = simulate_step(scenario, {.traced_ranks = {RankId(0)}}).trace;
  EXPECT_EQ(first_fault(trace), "");
  ASSERT_EQ(trace.of_cluster.size(), 1U);
  EXPECT_EQ(trace.of_cluster.front().name, "save");
  EXPECT_EQ(trace.of_cluster.front().bytes, gigabytes(64));
  EXPECT_NEAR((trace.of_cluster.front().end - Instant::start()).seconds(), 3.4, 1e-6);
  const auto disks = std::find_if(trace.counters.begin(), trace.counters.end(),
                                  [](const Counter& c) { return c.name.find("disks") == 0; });
  ASSERT_NE(disks, trace.counters.end());
  // The peak for a second, then what disks sustain, then nothing.
  ASSERT_EQ(disks->samples.size(), 3U);
  EXPECT_NEAR(disks->samples[0].value, 40, 1e-6);
  EXPECT_NEAR(disks->samples[1].value, 10, 1e-6);
  EXPECT_EQ(disks->samples[2].value, 0);
  EXPECT_NEAR((disks->samples[1].at - Instant::start()).seconds(), 1, 1e-6);
}

// Two jobs that save at once get half of the disks each, and each says so.
TEST(StorageFlows, of_other_jobs_share_the_store) {
  const Sets disks = {"checkpoint.storage.shared_gigabytes_per_second=10",
                      "checkpoint.storage.burst_factor=1"};
  const SmallPlan plan{.tp = 2, .pp = 2, .dp = 8};
  const Sets beside = with(with(kSaving, disks), {other_job(plan, kSaving)});
  for (const bool fold : {true, false}) {
    const StepResult both = step_of(beside, fold, plan);
    ASSERT_EQ(both.storage.size(), 2U);
    EXPECT_EQ(both.storage[0].job, "");
    EXPECT_EQ(both.storage[1].job, kSmallJobBase);
    for (const StorageFlow& flow : both.storage) EXPECT_NEAR(flow.took.seconds(), 12.8, 1e-5);
  }
  // One that has no flows of its own is still slowed where they go over the GPUs' NICs and pods.
  const Sets tight =
      with(kOverTraining, {"cluster.nic_gigabits_per_second=10", "cluster.gpus_per_pod=64",
                           "cluster.pod_oversubscription=20", "cluster.gpus=512",
                           "cluster.placement=RANDOM_HOSTS"});
  const Sets random = {"cluster.placement=RANDOM_HOSTS"};
  const StepResult saves =
      step_of(with(tight, {other_job(plan, with(random, kSaving))}), true, plan);
  const StepResult quiet = step_of(with(tight, {other_job(plan, random)}), true, plan);
  EXPECT_GT(saves.step_time, quiet.step_time);
  EXPECT_EQ(saves.without_storage, quiet.step_time);
}

// What is on a link of two jobs is this one's transfers and the rest.
TEST(LinkUse, tells_what_other_jobs_put_on_a_link) {
  const SmallPlan plan{.tp = 2, .pp = 2, .dp = 8};
  const Sets tight = {"cluster.gpus=512", "cluster.gpus_per_pod=64",
                      "cluster.pod_oversubscription=20", "cluster.placement=RANDOM_HOSTS",
                      other_job(plan, {"cluster.placement=RANDOM_HOSTS"})};
  bool others = false;
  for (const bool fold : {true, false}) {
    const StepResult step = step_of(tight, fold, plan);
    for (const TierUse& tier : step.tiers) EXPECT_LE(tier.highest_use, 1) << tier.tier;
    for (const LinkUse& use : step.links) {
      for (const LinkUse::Load& load : use.loads) others = others || load.transfer == "other jobs";
    }
    EXPECT_TRUE(others);
  }
}

TEST(StorageFlows, over_the_gpus_nics_slow_the_step_and_are_slowed_by_it) {
  const Sets slow_nics = {"cluster.nic_gigabits_per_second=10"};
  const StepResult plain = step_of(slow_nics);
  const StepResult saving = step_of(with(with(kSaving, kOverTraining), slow_nics));
  EXPECT_GT(saving.step_time.seconds(), 1.02 * plain.step_time.seconds());
  EXPECT_EQ(saving.without_storage, plain.step_time);
  // 1 GB a GPU over 1.25 GB/s, of which 97 % are left, is what it takes with the NICs to itself.
  EXPECT_GT(seconds_of(saving, "save"), 1.01 / (1.25 * 0.97));
}

TEST(StorageFlows, cost_no_more_the_less_of_a_save_is_left_and_nothing_after_the_step) {
  const Sets base = with(with(kSaving, kOverTraining), {"cluster.nic_gigabits_per_second=10"});
  const StepResult whole = step_of(base),
                   half = step_of(with(base, {"other_traffic.save_left=0.5"}));
  EXPECT_LE(half.step_time, whole.step_time);
  EXPECT_EQ(half.storage.front().bytes, gigabytes(32));
  const StepResult later = step_of(with(base, {"other_traffic.save_begins_s=1000"}));
  EXPECT_EQ(later.step_time, later.without_storage);
  EXPECT_NEAR(seconds_of(later, "save"), 1 / (1.25 * 0.97), 1e-6);
}

TEST(StorageFlows, that_bring_the_next_batch_late_are_waited_for) {
  const StepResult plain = step_of({});
  const StepResult slow = step_of(with(kReading, {"cluster.storage_network.servers=1"}));
  // What 20 GB/s are in the time of a step, at 12.5 GB/s less 3 %.
  EXPECT_NEAR(seconds_of(slow, "read"), plain.step_time.seconds() * 20 / (12.5 * 0.97), 1e-6);
  EXPECT_NEAR(slow.step_time.seconds(), seconds_of(slow, "read"), 1e-9);
  const double waited = slow.time_account_seconds()[static_cast<size_t>(TimeTerm::kLoader)];
  EXPECT_NEAR(waited, slow.step_time.seconds() - plain.step_time.seconds(), 1e-9);
  EXPECT_EQ(step_of(kReading).step_time, plain.step_time);
}

TEST(StorageFlows, that_never_end_are_told) {
  const auto fault_of = [](const Sets& sets) -> std::string {
    try {
      step_of(sets);
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  const Sets no_disks = {"checkpoint.storage.shared_gigabytes_per_second=1e-9",
                         "checkpoint.storage.burst_factor=1"};
  EXPECT_NE(fault_of(with(kSaving, no_disks)).find("the save never ends"), std::string::npos);
  const Sets flood = with(kReading, {"checkpoint.storage.data_loading_gigabytes_per_second=1e6",
                                     "checkpoint.storage.shared_gigabytes_per_second=0.001",
                                     "checkpoint.storage.burst_factor=1"});
  EXPECT_NE(fault_of(flood).find("reading the next batch takes"), std::string::npos);
}

// Saves and reads share what disks sustain.
TEST(StorageFlows, share_the_disks_with_each_other) {
  const Sets disks = {"checkpoint.storage.shared_gigabytes_per_second=10",
                      "checkpoint.storage.burst_factor=1"};
  const StepResult both = step_of(with(with(kSaving, kReading), disks));
  const double read = seconds_of(both, "read");
  EXPECT_GT(read, 1.5 * seconds_of(step_of(with(kReading, disks)), "read"));
  EXPECT_NEAR(seconds_of(both, "save"),
              6.4 + static_cast<double>(both.storage[1].bytes.count()) * 1e-10, 1e-5);
}

TEST(StorageFlows, give_the_same_folded_and_unfolded) {
  const Sets tight = {"cluster.gpus=512", "cluster.gpus_per_pod=64",
                      "cluster.pod_oversubscription=20", "cluster.placement=RANDOM_HOSTS"};
  const Sets slow_nics = {"cluster.nic_gigabits_per_second=10"};
  const Sets slow_nic = {"cluster.degraded={gpu: 9 nic_factor: 0.37}"};
  const Sets few_servers = {"cluster.storage_network.servers=3",
                            "cluster.storage_network.hosts_per_switch=3"};
  const Sets all = with(kSaving, kReading);
  for (const Sets& sets :
       {all, with(all, few_servers), with(with(all, kOverTraining), slow_nics),
        with(with(all, kOverTraining), tight),
        with(with(with(all, kOverTraining), with(tight, slow_nics)), slow_nic),
        with(with(with(kSaving, kOverTraining), slow_nics),
             {"other_traffic.save_begins_s=0.05", other_job({.tp = 2, .pp = 2, .dp = 8}, {})}),
        with(with(with(kSaving, kOverTraining), slow_nics),
             {"checkpoint.storage.shared_gigabytes_per_second=10", "checkpoint.storage.burst_s=0.1",
              other_job({.tp = 2, .pp = 2, .dp = 8}, with(kSaving, kReading), 0.1)})}) {
    const StepResult folded = step_of(sets), whole = step_of(sets, false);
    ASSERT_EQ(folded.storage.size(), whole.storage.size());
    EXPECT_EQ(folded.fingerprint(), whole.fingerprint());
    EXPECT_EQ(folded.without_storage, whole.without_storage);
    for (size_t f = 0; f < folded.storage.size(); ++f)
      EXPECT_EQ(folded.storage[f].took, whole.storage[f].took);
  }
}

}  // namespace
}  // namespace herdsim

// Flows between a job and its store beside its step: which links they share, and what that costs.
#include <gtest/gtest.h>

#include <string>
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
             {"other_traffic.save_begins_s=0.05", other_job({.tp = 2, .pp = 2, .dp = 8}, {})})}) {
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

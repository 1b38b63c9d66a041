// A store under closed forms: pipelines, hosts, peak and sustained rate, files, and jobs that meet
// on it.
#include "sim/storage/shared_store.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace herdsim {
namespace {

constexpr Bandwidth kUnbounded = gigabytes_per_second(1'000'000);

// 2,048 hosts, of which none is a bound.
StoreTenant job_of(Bytes bytes) {
  return {.hosts = 2048,
          .host = gigabytes_per_second(50),
          .write_most = kUnbounded,
          .read_most = kUnbounded,
          .bytes = bytes,
          .interval = seconds(600)};
}

double save_seconds(const SharedStore& store, const StoreTenant& job,
                    std::vector<StoreTenant> others = {}) {
  return save_time(store, job, others).mean.seconds();
}

// Llama 3's store: 5.67 TB in 0.8 s at its peak and 2.8 s without; 4 GB of each of 16,384 GPUs
// in 9.4 and 33 s.
TEST(SharedStore, takes_the_published_times_at_its_peak_and_at_what_it_sustains) {
  const SharedStore peak;
  const SharedStore steady{.burst_factor = 1};
  EXPECT_NEAR(save_seconds(peak, job_of(gigabytes(5'670))), 0.81, 0.005);
  EXPECT_NEAR(save_seconds(steady, job_of(gigabytes(5'670))), 2.835, 0.005);
  EXPECT_NEAR(save_seconds(peak, job_of(gigabytes(65'536))), 9.36, 0.01);
  EXPECT_NEAR(save_seconds(steady, job_of(gigabytes(65'536))), 32.8, 0.1);
  // A peak that lasts 4 s: 28 TB of them, and the rest at 2 TB/s.
  const SharedStore brief{.burst = seconds(4)};
  EXPECT_NEAR(save_seconds(brief, job_of(gigabytes(65'536))), 4 + (65.536 - 28) / 2, 0.001);
}

TEST(SharedStore, is_never_the_bound_of_a_job_that_asks_for_less_than_it_sustains) {
  const SharedStore store;
  for (const int64_t rate : {1, 7, 104, 1999}) {
    for (const int64_t hosts : {1, 3, 1120, 2048}) {
      StoreTenant job = job_of(gigabytes(5'683));
      job.hosts = hosts;
      job.host = gigabytes_per_second(5);
      job.write_most = gigabytes_per_second(rate);
      const StoreTime t = save_time(store, job, {});
      // The smaller of the pipeline and what the hosts' clients reach; exact.
      EXPECT_EQ(t.mean, job.bytes / gigabytes_per_second(std::min(rate, 5 * hosts)));
      EXPECT_EQ(t.alone, t.mean);
      EXPECT_EQ(t.worst, t.mean);
      EXPECT_EQ(t.loaders_slowed, 0);
    }
  }
}

// The shortcut for an ample store gives what running everything gives.
TEST(SharedStore, of_a_job_alone_is_the_same_run_or_not) {
  StoreTenant job = job_of(gigabytes(5'683));
  job.write_most = job.read_most = gigabytes_per_second(104);
  // The second sustains less than the job asks for, so it is run; its peak carries it.
  const SharedStore ample, tight{.sustained = gigabytes_per_second(103)};
  EXPECT_EQ(save_time(ample, job, {}).mean, save_time(tight, job, {}).mean);
  job.loading = gigabytes_per_second(90);
  EXPECT_EQ(load_time(ample, job, {}).mean, load_time(tight, job, {}).mean);
}

TEST(SharedStore, is_bound_by_files_where_there_are_many_small_ones) {
  const SharedStore store;
  StoreTenant job = job_of(gigabytes(100));
  job.files = 16'384;  // in one directory, at 10,000 a second
  EXPECT_NEAR(save_seconds(store, job), 1.6384, 1e-6);
  EXPECT_NEAR(load_time(store, job, {}).mean.seconds(), 1.6384, 1e-6);
  job.directories = 2048;
  EXPECT_EQ(save_seconds(store, job), (job.bytes / store.peak()).seconds());
}

TEST(SharedStore, moves_what_it_adds_to_each_byte_written_and_not_to_bytes_read) {
  SharedStore store{.burst_factor = 1, .write_amplification = 1.67};
  const StoreTenant job = job_of(gigabytes(5'670));
  EXPECT_NEAR(save_seconds(store, job), 2.835 * 1.67, 0.001);
  EXPECT_NEAR(load_time(store, job, {}).mean.seconds(), 2.835, 0.001);
}

// Two jobs of equal hosts that write all the time get half each; one of a third of the hosts a
// quarter.
TEST(SharedStore, is_shared_by_hosts_and_each_job_has_its_own_answer) {
  const SharedStore store{.burst_factor = 1};
  StoreTenant large = job_of(gigabytes(300'000)), small = job_of(gigabytes(300'000));
  large.interval = small.interval = seconds(1);  // they save on and on
  EXPECT_NEAR(save_seconds(store, large, {small}), 300, 0.01);
  small.hosts = 2048 / 4;
  EXPECT_NEAR(save_seconds(store, large, {small}), 300'000 / 1600.0, 0.5);
  EXPECT_NEAR(save_seconds(store, small, {large}), 300'000 / 400.0, 1);
}

// A save of 10 s in an interval of 100 s of somebody who does the same: 20 % of the phases overlap.
// One that starts while the other has x s left takes x s more, one that the other catches as much:
// 10 + 2 * the mean of x over all phases.
TEST(SharedStore, slows_a_save_by_what_the_phases_of_others_add_up_to) {
  const SharedStore store{.burst_factor = 1};
  StoreTenant job = job_of(gigabytes(20'000));
  job.interval = seconds(100);
  const std::array<StoreTenant, 1> other = {job};
  const StoreTime t = save_time(store, job, other);
  EXPECT_NEAR(t.alone.seconds(), 10, 1e-6);
  // x is even in [0, 10] for the two tenths of the phases: 2 * 0.1 * 5 = 1 s. Of 32 phases 6 or 7
  // overlap.
  EXPECT_NEAR(t.mean.seconds(), 11, 0.35);
  EXPECT_LE(t.worst.seconds(), 20);
  EXPECT_GT(t.worst.seconds(), 18);
}

TEST(SharedStore, leaves_data_loaders_their_fair_share_of_it) {
  const SharedStore store{.sustained = gigabytes_per_second(120), .burst_factor = 1};
  StoreTenant job = job_of(gigabytes(5'683));
  job.write_most = gigabytes_per_second(104);
  job.loading = gigabytes_per_second(90);
  const StoreTime t = save_time(store, job, {});
  // Half each; loaders ask for 90 and get 60.
  EXPECT_NEAR(t.mean.seconds(), 5'683.0 / 60, 0.01);
  EXPECT_NEAR(t.loaders_slowed, 1 - 60.0 / 90, 1e-6);
  EXPECT_NEAR(t.alone.seconds(), 5'683.0 / 104, 0.01);
}

TEST(SharedStore, that_carries_next_to_nothing_takes_longer_than_any_run) {
  const SharedStore dead{.sustained = bytes_per_second(1)};
  StoreTenant job = job_of(gigabytes(5'683));
  EXPECT_GT(save_time(dead, job, {}).mean, days(36'000));
  EXPECT_GT(load_time(dead, job, {}).mean, days(36'000));
  job.write_most = bytes_per_second(1);
  EXPECT_GT(save_time({}, job, {}).mean, days(36'000));
}

TEST(SharedStore, never_gains_from_another_job) {
  const SharedStore store{.sustained = gigabytes_per_second(300), .burst = seconds(10)};
  for (const int64_t bytes : {10, 1'000, 30'000}) {
    StoreTenant job = job_of(gigabytes(bytes));
    job.write_most = gigabytes_per_second(400);
    job.read_most = gigabytes_per_second(200);
    std::vector<StoreTenant> others;
    Duration last_save, last_load;
    for (int64_t n = 0; n < 4; ++n) {
      const StoreTime save = save_time(store, job, others), load = load_time(store, job, others);
      EXPECT_GE(save.worst, save.mean) << bytes << " GB beside " << n;
      EXPECT_GE(save.mean, save.alone) << bytes << " GB beside " << n;
      EXPECT_GE(save.mean, last_save) << bytes << " GB beside " << n;
      EXPECT_GE(load.mean, last_load) << bytes << " GB beside " << n;
      last_save = save.mean;
      last_load = load.mean;
      others.push_back({.hosts = 512,
                        .write_most = gigabytes_per_second(100),
                        .read_most = gigabytes_per_second(100),
                        .loading = gigabytes_per_second(20),
                        .bytes = gigabytes(4'000),
                        .interval = seconds(170)});
    }
  }
}

}  // namespace
}  // namespace herdsim

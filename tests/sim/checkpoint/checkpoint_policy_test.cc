#include "sim/checkpoint/checkpoint_policy.h"

#include <gtest/gtest.h>

#include <set>

namespace herdsim {
namespace {

const CheckpointSize kAt8960{.total = gigabytes(5'290), .gpus = 8'960, .data_parallel = 70};

TEST(CheckpointPolicy, every_row_has_a_name_and_costs_that_are_not_negative) {
  std::set<std::string_view> names;
  for (const CheckpointPolicy& row : checkpoint_policies()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
    const CheckpointPlan plan =
        plan_checkpoints(row, seconds(300), kAt8960, StorageModel{}, seconds(6));
    EXPECT_EQ(plan.tiers.size(), row.tiers.size()) << row.name;
    for (const CheckpointTier& tier : plan.tiers) {
      EXPECT_GE(tier.period_steps, 1) << row.name;
      EXPECT_GE(tier.block, Duration::zero()) << row.name;
      // Saves never queue: one is durable before the next begins.
      EXPECT_LE(tier.persist, seconds(6) * tier.period_steps) << row.name;
    }
  }
}

TEST(CheckpointPolicy, reproduces_the_published_405b_save_and_load) {
  // ByteCheckpoint, NSDI'25, 8,960 GPUs: 0.59 s blocked, 51.06 s saved, 129.49 s loaded; within 15
  // %.
  const CheckpointPlan plan = plan_checkpoints(*find_checkpoint_policy("async"), seconds(300),
                                               kAt8960, StorageModel{}, seconds(6));
  EXPECT_NEAR(plan.tiers[0].block.seconds() / 0.59, 1, 0.15);
  EXPECT_NEAR(plan.tiers[0].persist.seconds() / 51.06, 1, 0.15);
  EXPECT_NEAR(plan.tiers[0].load.seconds() / 129.49, 1, 0.15);
}

TEST(CheckpointPolicy, a_save_longer_than_its_interval_is_named_and_stretches_it) {
  const CheckpointPlan plan = plan_checkpoints(*find_checkpoint_policy("async"), seconds(30),
                                               kAt8960, StorageModel{}, seconds(6));
  ASSERT_EQ(plan.warnings.size(), 1u);
  EXPECT_NE(plan.warnings[0].find("checkpoint.interval_s"), std::string::npos);
  EXPECT_NE(plan.warnings[0].find("saves queue"), std::string::npos);
  EXPECT_EQ(plan.tiers[0].period_steps, 9);  // 50.9 s in steps of 6 s
}

TEST(CheckpointPolicy, other_traffic_on_the_store_slows_saves_once_it_is_the_bottleneck) {
  StorageModel busy;
  busy.background_share = 0.99;
  const auto persist = [](const StorageModel& storage) {
    return plan_checkpoints(*find_checkpoint_policy("async"), hours(1), kAt8960, storage,
                            seconds(6))
        .tiers[0]
        .persist;
  };
  // Its peak of 70 GB/s lasts a minute after the rest between two saves; then it sustains 20.
  EXPECT_NEAR(persist(busy).seconds(), 60 + (5290.0 - 60 * 70) / 20, 0.01);
  busy.burst_factor = 1;
  EXPECT_NEAR(persist(busy).seconds(), 5290.0 / 20, 0.01);
  busy.background_share = 0.5;
  EXPECT_EQ(persist(busy), persist(StorageModel{}));
}

TEST(CheckpointPolicy, increments_write_less_and_load_all_since_the_full_one) {
  const CheckpointPlan plan = plan_checkpoints(*find_checkpoint_policy("incremental"), seconds(300),
                                               kAt8960, StorageModel{}, seconds(6));
  const CheckpointTier& tier = plan.tiers[0];
  EXPECT_EQ(tier.persist_of(0), tier.persist);
  EXPECT_LT(tier.persist_of(tier.period_steps), tier.persist);
  EXPECT_EQ(tier.load_of(3 * tier.period_steps), tier.load + tier.delta_load * 3);
  EXPECT_EQ(tier.load_of(8 * tier.period_steps), tier.load);
}

TEST(CheckpointPolicy, blooms_saves_cost_their_published_share) {
  // 40 s every 3 h: 0.37 %.
  const CheckpointSize bloom{.total = gigabytes(2'300), .gpus = 384};
  StorageModel gpfs;
  gpfs.write_gb_per_s = 2300.0 / 40;
  gpfs.copy_out_gb_per_s_per_gpu = 1e9;
  const CheckpointPlan plan =
      plan_checkpoints(*find_checkpoint_policy("sync"), hours(3), bloom, gpfs, seconds(100));
  EXPECT_NEAR(plan.tiers[0].block.seconds() / (3 * 3600), 0.0037, 0.0002);
}

}  // namespace
}  // namespace herdsim

// Laws of unequal shares: the mean is one, and known lengths of documents give known shares.
#include "workloads/uneven_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace herdsim {
namespace {

// A question that owns what it asks about.
struct Job {
  ModelArchitecture model{.layers = 2,
                          .hidden = 64,
                          .ffn = 256,
                          .heads = 8,
                          .kv_heads = 8,
                          .head_dim = 8,
                          .vocab = 512,
                          .experts = 8,
                          .experts_per_token = 2};
  ParallelPlan plan;
  Training training{.sequence_length = 4096, .global_batch = 64};
  SoftwareStack software;

  WorkloadSpec spec() const { return {model, plan, training, software}; }
};

TEST(UnevenLoad, the_busiest_expert_rank_has_its_share_and_the_group_has_the_mean) {
  for (const int64_t expert_tp : {0, 1}) {
    Job job;
    job.plan = {.tp = 2, .ep = 4, .pp = 2, .dp = 8, .expert_tp = expert_tp};
    job.training.expert_imbalance = 1.75;
    const RankGrid grid = job.plan.grid();
    const UnevenLoad load = expert_load(job.spec(), grid);
    for (size_t g = 0; g < grid.group_count(Communicator::kExpert); ++g) {
      double sum = 0, most = 0;
      for (size_t i = 0; i < grid.group_size(Communicator::kExpert); ++i) {
        const double share = load.at(grid.member(CommGroupId(g), Communicator::kExpert, i), 0);
        sum += share;
        most = std::max(most, share);
      }
      EXPECT_DOUBLE_EQ(sum, static_cast<double>(job.plan.ep));
      EXPECT_DOUBLE_EQ(most, 1.75);
    }
  }
}

TEST(UnevenLoad, balanced_experts_and_whole_sequences_are_not_uneven) {
  Job job;
  job.plan = {.ep = 4, .dp = 8};
  EXPECT_TRUE(expert_load(job.spec(), job.plan.grid()).empty());
  EXPECT_TRUE(document_load(job.spec(), job.plan.grid()).empty());
  job.training.expert_imbalance = 3;
  job.training.expert_capacity_factor = 1;
  EXPECT_TRUE(expert_load(job.spec(), job.plan.grid()).empty()) << "what is too much is dropped";
}

TEST(UnevenLoad, equal_documents_leave_their_share_of_the_triangle) {
  for (const double length : {64.0, 512.0, 4096.0}) {
    EXPECT_NEAR(mean_document_mask({.mean_tokens = length, .sigma = 0}, 4096), (length + 1) / 4097,
                1e-9);
  }
  EXPECT_DOUBLE_EQ(mean_document_mask({.mean_tokens = 1e9, .sigma = 1}, 4096), 1.0);
}

TEST(UnevenLoad, packed_documents_are_between_one_token_and_the_sequence) {
  EXPECT_DOUBLE_EQ(mean_packed_tokens({.mean_tokens = 512, .sigma = 0}, 4096), 512);
  EXPECT_DOUBLE_EQ(mean_packed_tokens({.mean_tokens = 1e9, .sigma = 1}, 4096), 4096);
  EXPECT_DOUBLE_EQ(mean_packed_tokens({.mean_tokens = 1e-6, .sigma = 1}, 4096), 1);
  // Far from both ends what is drawn is what there is; near them the longest are cut.
  EXPECT_NEAR(mean_packed_tokens({.mean_tokens = 1000, .sigma = 0.5}, 1'000'000), 1000, 1e-6);
  // Of 200,000 draws 562.8 +- 2.2; and most of a wide distribution is far below its mean: 7.1 +-
  // 0.3.
  EXPECT_NEAR(mean_packed_tokens({.mean_tokens = 1000, .sigma = 2}, 4096), 562.8, 5 * 2.2);
  EXPECT_NEAR(mean_packed_tokens({.mean_tokens = 100, .sigma = 5}, 4096), 7.1, 5 * 0.3);
}

TEST(UnevenLoad, a_sequence_of_one_token_is_one_document) {
  EXPECT_DOUBLE_EQ(mean_document_mask({.mean_tokens = 100, .sigma = 1}, 1), 1.0);
}

TEST(UnevenLoad, context_ranks_of_a_whole_sequence_have_equal_shares) {
  Job job;
  job.plan = {.cp = 4, .dp = 2};
  job.training.documents = {.mean_tokens = 1e9, .sigma = 0};
  const UnevenLoad load = document_load(job.spec(), job.plan.grid());
  for (const double factor : load.factors) EXPECT_NEAR(factor, 1.0, 1e-3);
}

// The mean over 64 sequences of about 4 documents each: 5 sigma of its own spread.
TEST(UnevenLoad, shares_of_documents_are_one_in_the_mean_and_differ_by_replica_and_micro_batch) {
  Job job;
  job.plan = {.tp = 2, .cp = 2, .dp = 8};
  job.training.documents = {.mean_tokens = 1000, .sigma = 1};
  job.training.document_mask_fraction =
      mean_document_mask(job.training.documents, job.training.sequence_length);
  const UnevenLoad load = document_load(job.spec(), job.plan.grid());
  ASSERT_EQ(load.factors.size(), 8u * 2 * 8);
  const auto n = static_cast<double>(load.factors.size());
  const double mean = std::accumulate(load.factors.begin(), load.factors.end(), 0.0) / n;
  double square = 0;
  for (const double f : load.factors) square += (f - mean) * (f - mean);
  const double spread = std::sqrt(square / n);
  EXPECT_GT(spread, 0.1);
  EXPECT_NEAR(mean, 1.0, 5 * spread / std::sqrt(n / 2));
  const RankGrid grid = job.plan.grid();
  EXPECT_EQ(load.at(RankId(0), 3), load.at(grid.with(RankId(0), Axis::kTp, 1), 3));
  EXPECT_NE(load.at(RankId(0), 3), load.at(RankId(0), 4));
  EXPECT_NE(load.at(RankId(0), 3), load.at(grid.with(RankId(0), Axis::kDp, 1), 3));
}

}  // namespace
}  // namespace herdsim

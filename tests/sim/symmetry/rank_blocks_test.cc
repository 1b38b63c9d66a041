// Folding by blocks of ranks against folding rank by rank: the same job, to the bit.
#include "sim/symmetry/rank_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/symmetry/folded_jobs.h"
#include "tests/sim/executor/job_cases.h"

namespace herdsim {
namespace {

bool same(const FoldedRank& a, const FoldedRank& b) {
  return a.representative == b.representative && a.members == b.members && a.program == b.program &&
         a.compute_factor == b.compute_factor;
}

bool same(const FoldedTransfer& a, const FoldedTransfer& b) {
  return a.shape == b.shape && a.instance == b.instance && a.instances == b.instances &&
         a.own_bound == b.own_bound && a.first_crossing == b.first_crossing &&
         a.crossings == b.crossings && a.first_member == b.first_member && a.members == b.members;
}

bool same(const OwnLinks& a, const OwnLinks& b) {
  return a.kind == b.kind && a.count == b.count && a.links == b.links;
}

bool same(const Crossing& a, const Crossing& b) { return a.link == b.link && a.count == b.count; }

bool same(const FoldedJob::Directions& a, const FoldedJob::Directions& b) {
  return a.up == b.up && a.down == b.down;
}

template <class Sequence>
bool all_same(const Sequence& a, const Sequence& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

void expect_same(const FoldedLane& a, const FoldedLane& b) {
  EXPECT_EQ(a.is_message, b.is_message);
  EXPECT_EQ(a.communicator, b.communicator);
  EXPECT_EQ(a.instances, b.instances);
  EXPECT_EQ(a.spread.worst, b.spread.worst);
  EXPECT_EQ(a.spread.mean, b.spread.mean);
  EXPECT_EQ(a.spread.error, b.spread.error);
  EXPECT_EQ(a.spread.connections, b.spread.connections);
  EXPECT_TRUE(all_same(a.own_links, b.own_links));
  EXPECT_EQ(a.shapes, b.shapes);
  EXPECT_TRUE(all_same(a.transfers, b.transfers));
  EXPECT_TRUE(all_same(a.crossings, b.crossings));
  EXPECT_EQ(a.members, b.members);
  EXPECT_EQ(a.transfer_of, b.transfer_of);
}

void expect_same(const FoldedJob& a, const FoldedJob& b) {
  EXPECT_TRUE(all_same(a.ranks, b.ranks));
  EXPECT_EQ(a.capacity.values(), b.capacity.values());
  EXPECT_EQ(a.representative_link, b.representative_link);
  EXPECT_TRUE(all_same(a.links_of_class, b.links_of_class));
  EXPECT_EQ(a.changes.size(), b.changes.size());
  EXPECT_EQ(a.lane_of_work.values(), b.lane_of_work.values());
  EXPECT_EQ(a.peers.values(), b.peers.values());
  EXPECT_EQ(a.message_lane, b.message_lane);
  EXPECT_EQ(a.receivers.values(), b.receivers.values());
  EXPECT_EQ(a.class_of_rank, b.class_of_rank);
  ASSERT_EQ(a.lanes.size(), b.lanes.size());
  for (size_t l = 0; l < a.lanes.size(); ++l) {
    SCOPED_TRACE("lane " + std::to_string(l));
    expect_same(a.lanes[l], b.lanes[l]);
  }
}

size_t block_of(const PlannedJob& job) {
  return rank_blocks(job.graph.grid, alike_gpus(job.machine)).ranks;
}

void expect_blocks_change_nothing(const PlannedJob& job) {
  expect_same(FoldedJobs().of(job.graph, job.machine), job.fold_with(job.classes()));
}

TEST(RankBlocks, change_nothing_for_any_kind_of_job) {
  size_t in_blocks = 0;
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    expect_blocks_change_nothing(job);
    in_blocks += block_of(job) > 1 ? 1 : 0;
  }
  EXPECT_GT(in_blocks, job_cases().size() / 5);
}

class Draw {
 public:
  explicit Draw(uint32_t seed) : engine_(seed) {}
  template <class Value>
  Value of(std::initializer_list<Value> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(engine_() % values.size()));
  }
  bool one_in(uint32_t n) { return engine_() % n == 0; }

 private:
  std::mt19937 engine_;
};

// Hosts of one kind in racks and pods that bind or not, with rails or without.
std::vector<std::string> random_job(Draw& draw) {
  const SmallPlan plan{.tp = draw.of({1, 2, 4, 6, 8, 16}),
                       .cp = draw.of({1, 1, 2, 4}),
                       .pp = draw.of({1, 2, 4}),
                       .dp = draw.of({1, 4, 8, 16}),
                       .micro_batches = 4};
  std::vector<std::string> sets = {
      "cluster.gpus=4096",
      "cluster.gpus_per_pod=" + draw.of<std::string>({"128", "256", "2048"}),
      "cluster.pod_oversubscription=" + draw.of<std::string>({"1", "7", "20"}),
      "cluster.routing=" + draw.of<std::string>({"ecmp", "e-ecmp", "path-pinning", "adaptive"}),
      "cluster.placement=" +
          draw.of<std::string>({"TOPOLOGY_ORDER", "TOPOLOGY_ORDER", "RANDOM_HOSTS", "PACKED_PODS"}),
      "parallel.shard=" + draw.of<std::string>({"NONE", "ZERO3", "FSDP_KEEP"}),
      "parallel.order=" +
          draw.of<std::string>({"[TP, CP, PP, DP]", "[TP, CP, PP, DP]", "[DP, TP, CP, PP]",
                                "[CP, TP, DP, PP]", "[PP, TP, CP, DP]"})};
  if (plan.dp >= 4 && draw.one_in(2)) {
    sets.insert(sets.end(), {"model.experts=8", "model.experts_per_token=2",
                             "model.expert_ffn=4096", "parallel.ep=4", "parallel.expert_tp=1"});
  } else if (plan.dp >= 4 && draw.one_in(2)) {
    sets.push_back("parallel.dp_shard=4");
  }
  if (draw.one_in(4)) sets.push_back("cluster.unavailable_fraction=0.05");
  if (draw.one_in(6)) sets.push_back("cluster.degraded={gpu: 3 nic_factor: 0.5}");
  if (draw.one_in(6)) sets.push_back("cluster.degraded={tor: 0 uplink_factor: 0.5}");
  if (draw.one_in(6)) sets.push_back("cluster.degraded={gpu: 0 compute_factor: 0.9}");
  return small_job(plan, sets);
}

TEST(RankBlocks, change_nothing_for_random_jobs_on_random_fabrics) {
  size_t loaded = 0, in_blocks = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    const char* base = draw.of({"llama3-405b-16384", "llama3-70b-8192"});
    const std::vector<std::string> sets = random_job(draw);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::optional<PlannedJob> job;
    try {
      job.emplace(load_scenario(base, sets));
    } catch (const SpecError&) {
      continue;  // a combination that the model does not allow
    }
    ++loaded;
    in_blocks += block_of(*job) > 1 ? 1 : 0;
    expect_blocks_change_nothing(*job);
  }
  EXPECT_GT(loaded, 100u);
  EXPECT_GT(in_blocks, 50u);
}

}  // namespace
}  // namespace herdsim

// A folded job is the unfolded one, bit for bit: result, every rank's account and spans, what every
// link carried.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

std::vector<RankClassId> all_of(const FoldedJob& job) {
  std::vector<RankClassId> all(job.ranks.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = RankClassId(i);
  return all;
}

// The spans in order of op: transfers that end in one instant may be recorded in any order.
std::vector<OpSpan> by_op(std::vector<OpSpan> spans) {
  std::sort(spans.begin(), spans.end(),
            [](const OpSpan& a, const OpSpan& b) { return a.op < b.op; });
  return spans;
}

bool same(const std::vector<OpSpan>& a, const std::vector<OpSpan>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const OpSpan& x, const OpSpan& y) {
    return x.op == y.op && x.begin == y.begin && x.end == y.end;
  });
}

// Counting transfers and watching them move agree on what every link carried.
TEST(LinkUse, is_what_the_network_carried) {
  for (const JobCase& c : job_cases()) {
    const PlannedJob job(c.scenario());
    const FoldedJob folded = job.fold_with(job.classes());
    const StepOutcome outcome = job.run(folded);
    std::vector<int64_t> carried(folded.capacity.size());
    for (const TransferRuns& runs : outcome.transfers) {
      const FoldedLane& lane = folded.lanes[runs.lane];
      const FoldedTransfer& transfer = lane.transfers[runs.transfer];
      const Work& work = job.graph.works[runs.work];
      const GroupShape& shape = lane.shapes[transfer.shape];
      const CollectivePlan plan =
          lane.is_message
              ? plan_collective(CollectiveKind::kSendRecv, work.bytes, shape, job.tuning)
              : plan_of(work, shape, job.tuning);
      for (const Crossing& crossing : lane.path(transfer)) {
        carried[crossing.link.index()] += runs.runs * plan.volume.count() * crossing.count;
      }
    }
    for (size_t l = 0; l < carried.size(); ++l) {
      EXPECT_EQ(Bytes(carried[l]), outcome.link_bytes[LinkId(l)]) << c.name << ", link " << l;
    }
  }
}

class Folding : public testing::TestWithParam<JobCase> {};

TEST_P(Folding, gives_every_rank_and_link_what_the_whole_job_gives_it) {
  const PlannedJob job(GetParam().scenario());
  const JobClasses classes = job.classes();
  const FoldedJob folded = job.fold_with(classes);
  const FoldedJob whole = job.fold_with(job.singles());
  ASSERT_EQ(static_cast<int64_t>(whole.ranks.size()), job.scenario.gpus);

  const StepOutcome few = job.run(folded, all_of(folded));
  const StepOutcome all = job.run(whole, all_of(whole));
  ASSERT_TRUE(all.deadlock.empty());
  ASSERT_TRUE(few.deadlock.empty());
  EXPECT_EQ(few.makespan, all.makespan);

  for (size_t r = 0; r < whole.ranks.size(); ++r) {
    const RankClassId c(folded.class_of_rank[r]);
    ASSERT_EQ(few.account[c], all.account[RankClassId(r)]) << "rank " << r;
    ASSERT_TRUE(same(by_op(few.spans[c.index()]), by_op(all.spans[r]))) << "rank " << r;
  }
  for (size_t l = 0; l < classes.links.size(); ++l) {
    ASSERT_EQ(few.link_bytes[LinkId(classes.link_classes.class_of[l])], all.link_bytes[LinkId(l)])
        << "link " << classes.links[l].index();
  }
}

TEST_P(Folding, gives_the_result_of_the_whole_job) {
  const Scenario& scenario = GetParam().scenario();
  const StepResult folded = simulate_step(scenario, {.fold = true}).result;
  const StepResult whole = simulate_step(scenario, {.fold = false}).result;
  EXPECT_EQ(whole.simulated_ranks, scenario.gpus);
  EXPECT_EQ(folded.fingerprint(), whole.fingerprint());
  EXPECT_EQ(folded.all_warnings(), whole.all_warnings());
  ASSERT_EQ(folded.links.size(), whole.links.size());
  for (size_t i = 0; i < folded.links.size(); ++i) {
    EXPECT_EQ(folded.links[i].first, whole.links[i].first);
    EXPECT_EQ(folded.links[i].links, whole.links[i].links) << folded.links[i].first;
    EXPECT_EQ(folded.links[i].loads_text(), whole.links[i].loads_text());
    EXPECT_EQ(folded.links[i].carried, whole.links[i].carried);
  }
  const int64_t booked = std::accumulate(folded.account_rank_nanoseconds.begin(),
                                         folded.account_rank_nanoseconds.end(), int64_t{0});
  EXPECT_EQ(booked, folded.step_time.nanoseconds() * folded.gpus);
}

INSTANTIATE_TEST_SUITE_P(EveryKindOfJob, Folding, testing::ValuesIn(job_cases()),
                         [](const auto& parameter) {
                           std::string name;
                           for (const char c : parameter.param.name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
                               name += c;
                             } else if (!name.empty() && name.back() != '_') {
                               name += '_';
                             }
                           }
                           return name;
                         });

}  // namespace
}  // namespace herdsim

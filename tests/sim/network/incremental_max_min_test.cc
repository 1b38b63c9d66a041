#include "sim/network/incremental_max_min.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/sim/network/random_systems.h"

namespace herdsim {
namespace {

struct KnownFlow {
  std::vector<Crossing> path;
  Bandwidth cap;
};

// Random operations on the fast solver and a list of flows; after each batch the plain solver is
// the judge.
class Differential {
 public:
  Differential(uint64_t seed, Scale scale, size_t links) : dice_(seed), scale_(scale) {
    for (size_t l = 0; l < links; ++l) capacities_.push_back(random_capacity(dice_, scale));
    fast_.emplace(capacities_);
  }

  void operate(int64_t flows_wanted) {
    const int64_t what = dice_.between(0, 19);
    if (what == 0) {
      const LinkId link(
          static_cast<size_t>(dice_.between(0, static_cast<int64_t>(capacities_.size()) - 1)));
      capacities_[link.index()] = random_capacity(dice_, scale_);
      fast_->set_capacity(link, capacities_[link.index()]);
    } else if (dice_.between(0, 2 * flows_wanted) >= static_cast<int64_t>(flows_.size())) {
      KnownFlow flow{random_path(dice_, capacities_.size()), random_cap(dice_, scale_)};
      const FlowId id = fast_->add(flow.path, flow.cap);
      ASSERT_TRUE(flows_.emplace(id, std::move(flow)).second)
          << "the id of a live flow was given away";
    } else {
      auto victim = flows_.begin();
      std::advance(victim, dice_.between(0, static_cast<int64_t>(flows_.size()) - 1));
      fast_->remove(victim->first);
      rates_.erase(victim->first);
      flows_.erase(victim);
    }
  }

  void compare() {
    std::vector<FlowPath> paths;
    for (const auto& [id, flow] : flows_) paths.push_back({flow.path, flow.cap});
    const std::vector<Bandwidth> expected = max_min_rates(capacities_, paths);
    std::set<FlowId> reported;
    for (const FlowId id : fast_->solve()) {
      ASSERT_TRUE(flows_.contains(id)) << "a removed flow was reported";
      ASSERT_TRUE(reported.insert(id).second) << "a flow was reported twice";
    }
    size_t i = 0;
    for (const auto& [id, flow] : flows_) {
      ASSERT_EQ(fast_->rate(id), expected[i]);
      const auto before = rates_.find(id);
      ASSERT_EQ(reported.contains(id), before == rates_.end() || before->second != expected[i])
          << "a change was missed, or there was none";
      rates_[id] = expected[i];
      ++i;
    }
  }

  Dice& dice() { return dice_; }

 private:
  Dice dice_;
  Scale scale_;
  std::vector<Bandwidth> capacities_;
  std::optional<IncrementalMaxMin> fast_;
  std::map<FlowId, KnownFlow> flows_;
  std::map<FlowId, Bandwidth> rates_;  // as reported
};

TEST(IncrementalMaxMin, equals_the_plain_solver_bit_for_bit_after_every_batch_of_random_changes) {
  for (const Scale scale : kScales) {
    for (uint64_t seed = 1; seed <= 120; ++seed) {
      Differential test(seed, scale, static_cast<size_t>(3 + seed % 20));
      const int64_t flows_wanted = test.dice().between(1, 25);
      for (int round = 0; round < 100; ++round) {
        for (int64_t n = test.dice().between(1, 4); n-- > 0;) test.operate(flows_wanted);
        test.compare();
        ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << " round " << round;
      }
    }
  }
}

Bandwidth rate(int64_t n) { return Bandwidth::from_bytes_per_second(n); }

TEST(IncrementalMaxMin, a_flow_alone_on_its_links_is_settled_without_visiting_anything) {
  IncrementalMaxMin sharing(std::vector<Bandwidth>(4, rate(100)));
  const std::vector<Crossing> left = {{LinkId(0)}, {LinkId(1), 3}},
                              right = {{LinkId(2)}, {LinkId(3)}};
  const FlowId a = sharing.add(left, rate(1000));
  const FlowId b = sharing.add(right, rate(7));
  EXPECT_EQ(sharing.solve().size(), 2u);
  EXPECT_EQ(sharing.rate(a), rate(33));
  EXPECT_EQ(sharing.rate(b), rate(7));
  sharing.remove(a);
  EXPECT_TRUE(sharing.solve().empty());
  EXPECT_EQ(sharing.flows_visited(), 0);
}

TEST(IncrementalMaxMin, flows_below_the_level_of_a_change_are_not_visited) {
  // 100 flows stopped low on link 0; some of them cross link 1, where a fast flow comes and goes.
  IncrementalMaxMin sharing(std::vector<Bandwidth>{rate(1000), rate(1'000'000), rate(500'000)});
  const std::vector<Crossing> low = {{LinkId(0)}}, both = {{LinkId(0)}, {LinkId(1)}},
                              high = {{LinkId(1)}};
  for (int i = 0; i < 95; ++i) sharing.add(low, Bandwidth::unlimited());
  for (int i = 0; i < 5; ++i) sharing.add(both, Bandwidth::unlimited());
  sharing.solve();
  const int64_t before = sharing.flows_visited();
  const FlowId fast = sharing.add(high, Bandwidth::unlimited());
  EXPECT_EQ(sharing.solve().size(), 1u);
  EXPECT_EQ(sharing.rate(fast), rate(1'000'000 - 50));
  EXPECT_LE(sharing.flows_visited() - before, 20);
}

}  // namespace
}  // namespace herdsim

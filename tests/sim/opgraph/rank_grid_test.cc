// Laws of the grid for every communicator, over all sizes up to five and some uneven ones.
#include "sim/opgraph/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace herdsim {
namespace {

// All that every rank belongs to; kEnds has its own test.
constexpr Communicator kAll[] = {Communicator::kTensor,         Communicator::kContext,
                                 Communicator::kGradient,       Communicator::kShard,
                                 Communicator::kReplica,        Communicator::kExpert,
                                 Communicator::kExpertGradient, Communicator::kWorld};

constexpr std::array<Axis, kAxes> kOrders[] = {
    {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp},
    {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp},
    {Axis::kDp, Axis::kPp, Axis::kTp, Axis::kCp},
};

template <class Body>
void for_each_grid(Body&& body) {
  for (const auto& order : kOrders) {
    for (int64_t tp = 1; tp <= 3; ++tp) {
      for (int64_t cp = 1; cp <= 2; ++cp) {
        for (int64_t pp = 1; pp <= 4; ++pp) {
          for (const int64_t dp : {1, 4, 6}) {
            for (const int64_t inner : {1, 2}) {
              if (dp % inner != 0) continue;
              for (const bool mirrored : {false, true}) {
                if (mirrored && pp % 2 != 0) continue;
                SCOPED_TRACE(testing::Message()
                             << tp << " x " << cp << " x " << pp << " x " << dp << ", inner "
                             << inner << ", mirrored " << mirrored);
                body(RankGrid({.tp = tp,
                               .cp = cp,
                               .pp = pp,
                               .dp = dp,
                               .inner = inner,
                               .experts_span_tp = tp == 3,
                               .mirrored = mirrored,
                               .order = order}),
                     mirrored);
              }
            }
          }
        }
      }
    }
  }
}

TEST(RankGrid, tensor_ranks_are_innermost_and_data_ranks_outermost) {
  const RankGrid grid({.tp = 2, .cp = 3, .pp = 5, .dp = 7});
  const RankId rank(((6 * 5 + 4) * 3 + 2) * 2 + 1);
  EXPECT_EQ(grid.ranks(), 210u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kTp), 1u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kCp), 2u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kPp), 4u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kDp), 6u);
}

TEST(RankGrid, with_changes_one_coordinate_and_no_other) {
  for_each_grid([](const RankGrid& grid, bool) {
    for (size_t r = 0; r < grid.ranks(); ++r) {
      for (size_t axis = 0; axis < kAxes; ++axis) {
        for (size_t value = 0; value < grid.size(static_cast<Axis>(axis)); ++value) {
          const RankId moved = grid.with(RankId(r), static_cast<Axis>(axis), value);
          for (size_t other = 0; other < kAxes; ++other) {
            ASSERT_EQ(grid.coordinate(moved, static_cast<Axis>(other)),
                      other == axis ? value : grid.coordinate(RankId(r), static_cast<Axis>(other)));
          }
        }
      }
    }
  });
}

TEST(RankGrid, every_rank_is_in_one_group_of_each_communicator) {
  for_each_grid([](const RankGrid& grid, bool) {
    for (const Communicator c : kAll) {
      ASSERT_EQ(grid.group_count(c) * grid.group_size(c), grid.ranks());
      std::set<RankId> seen;
      for (size_t g = 0; g < grid.group_count(c); ++g) {
        for (size_t i = 0; i < grid.group_size(c); ++i) {
          const RankId rank = grid.member(CommGroupId(g), c, i);
          ASSERT_LT(rank.index(), grid.ranks());
          ASSERT_TRUE(seen.insert(rank).second);
          ASSERT_EQ(grid.group_of(rank, c), CommGroupId(g));
          if (i == 0) continue;
          ASSERT_LT(grid.member(CommGroupId(g), c, i - 1), rank);
        }
      }
      ASSERT_EQ(seen.size(), grid.ranks());
    }
  });
}

TEST(RankGrid, lists_the_members_it_names_one_by_one) {
  for_each_grid([](const RankGrid& grid, bool) {
    std::vector<RankId> members = {RankId(7)};
    for (const Communicator c : kAll) {
      for (size_t g = 0; g < grid.group_count(c); ++g) {
        grid.list_members(CommGroupId(g), c, members);
        ASSERT_EQ(members.size(), grid.group_size(c));
        for (size_t i = 0; i < members.size(); ++i) {
          ASSERT_EQ(members[i], grid.member(CommGroupId(g), c, i));
        }
      }
    }
  });
}

TEST(RankGrid, blocks_of_one_axis_lie_in_one_group_or_in_consecutive_ones) {
  for_each_grid([](const RankGrid& grid, bool) {
    for (const size_t most : {2, 3, 4, 8}) {
      const size_t block = grid.block_of_one_axis(most);
      ASSERT_EQ(most % block, 0u);
      if (block == 1) continue;
      for (size_t r = 0; r < grid.ranks(); ++r) {
        const RankId first(r - r % block);
        ASSERT_EQ(grid.coordinate(RankId(r), Axis::kPp), grid.coordinate(first, Axis::kPp));
        for (const Communicator c : kAll) {
          const size_t turned = grid.holds_whole_blocks(c) ? 0 : r % block;
          ASSERT_EQ(grid.group_of(RankId(r), c).index(), grid.group_of(first, c).index() + turned);
          ASSERT_TRUE(turned == 0 || grid.group_of(first, c).index() % block == 0);
        }
      }
    }
  });
}

TEST(RankGrid, a_group_agrees_on_every_axis_it_does_not_span) {
  for_each_grid([](const RankGrid& grid, bool mirrored) {
    const size_t stages = grid.size(Axis::kPp);
    for (size_t r = 0; r < grid.ranks(); ++r) {
      const RankId rank(r);
      for (const Communicator c : kAll) {
        if (c == Communicator::kWorld) continue;
        for (size_t i = 0; i < grid.group_size(c); ++i) {
          const RankId other = grid.member(grid.group_of(rank, c), c, i);
          const auto spans = [&](std::initializer_list<Communicator> list) {
            return std::find(list.begin(), list.end(), c) != list.end();
          };
          const auto agrees = [&](Axis axis) {
            return grid.coordinate(rank, axis) == grid.coordinate(other, axis);
          };
          const bool span_tp = spans({Communicator::kTensor}) ||
                               (c == Communicator::kExpert && grid.size(Axis::kTp) == 3);
          ASSERT_TRUE(span_tp || agrees(Axis::kTp));
          ASSERT_TRUE(spans({Communicator::kContext, Communicator::kGradient, Communicator::kShard,
                             Communicator::kExpertGradient}) ||
                      agrees(Axis::kCp));
          const bool mirrors = mirrored && spans({Communicator::kGradient, Communicator::kReplica,
                                                  Communicator::kExpertGradient});
          const size_t s = grid.coordinate(rank, Axis::kPp), t = grid.coordinate(other, Axis::kPp);
          ASSERT_TRUE(s == t || (mirrors && s + t == stages - 1));
          ASSERT_TRUE(!spans({Communicator::kTensor, Communicator::kContext}) || agrees(Axis::kDp));
        }
      }
    }
  });
}

TEST(RankGrid, blocks_of_replicas_are_consecutive_and_their_counterparts_a_block_apart) {
  const RankGrid grid({.tp = 2, .dp = 12, .inner = 4});
  const auto dp_of = [&](Communicator c, size_t position) {
    return grid.coordinate(grid.member(grid.group_of(RankId(2), c), c, position), Axis::kDp);
  };
  EXPECT_EQ(grid.group_size(Communicator::kShard), 4u);
  EXPECT_EQ(grid.group_size(Communicator::kReplica), 3u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(dp_of(Communicator::kShard, i), i);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(dp_of(Communicator::kReplica, i), 1 + 4 * i);
}

TEST(RankGrid, experts_that_span_tensor_ranks_are_shared_by_all_of_them) {
  const RankGrid grid({.tp = 2, .dp = 8, .inner = 4, .experts_span_tp = true});
  EXPECT_EQ(grid.group_size(Communicator::kExpert), 8u);
  EXPECT_EQ(grid.group_size(Communicator::kExpertGradient), 2u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(grid.member(CommGroupId(0), Communicator::kExpert, i), RankId(i));
  }
}

TEST(RankGrid, the_ends_of_a_pipeline_are_its_first_and_its_last_stage) {
  for_each_grid([](const RankGrid& grid, bool) {
    const size_t stages = grid.size(Axis::kPp);
    ASSERT_EQ(grid.group_size(Communicator::kEnds), stages > 1 ? 2u : 1u);
    ASSERT_EQ(grid.group_count(Communicator::kEnds), grid.ranks() / stages);
    for (size_t r = 0; r < grid.ranks(); ++r) {
      const CommGroupId group = grid.group_of(RankId(r), Communicator::kEnds);
      const RankId first = grid.member(group, Communicator::kEnds, 0);
      ASSERT_EQ(first, grid.with(RankId(r), Axis::kPp, 0));
      if (stages == 1) continue;
      ASSERT_EQ(grid.member(group, Communicator::kEnds, 1),
                grid.with(RankId(r), Axis::kPp, stages - 1));
    }
  });
}

TEST(RankGrid, a_million_ranks_cost_nothing_to_describe) {
  const RankGrid grid({.tp = 8, .pp = 16, .dp = 8192});
  EXPECT_EQ(grid.ranks(), 1048576u);
  EXPECT_EQ(grid.group_size(Communicator::kGradient), 8192u);
  EXPECT_EQ(grid.group_count(Communicator::kGradient), 128u);
  EXPECT_LE(sizeof(RankGrid), 512u);
}

}  // namespace
}  // namespace herdsim

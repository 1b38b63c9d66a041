// Laws of the grid for every communicator, over all sizes up to five and some uneven ones.
#include "sim/opgraph/rank_grid.h"

#include <gtest/gtest.h>

#include <set>

namespace herdsim {
namespace {

constexpr Communicator kAll[] = {Communicator::kTensor, Communicator::kContext,
                                 Communicator::kGradient, Communicator::kWorld};

template <class Body>
void for_each_grid(Body&& body) {
  for (int64_t tp = 1; tp <= 4; ++tp) {
    for (int64_t cp = 1; cp <= 3; ++cp) {
      for (int64_t pp = 1; pp <= 5; ++pp) {
        for (int64_t dp = 1; dp <= 3; ++dp) {
          SCOPED_TRACE(testing::Message() << tp << " x " << cp << " x " << pp << " x " << dp);
          body(RankGrid(tp, cp, pp, dp));
        }
      }
    }
  }
}

TEST(RankGrid, tensor_ranks_are_innermost_and_data_ranks_outermost) {
  const RankGrid grid(2, 3, 5, 7);
  const RankId rank(((6 * 5 + 4) * 3 + 2) * 2 + 1);
  EXPECT_EQ(grid.ranks(), 210u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kTp), 1u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kCp), 2u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kPp), 4u);
  EXPECT_EQ(grid.coordinate(rank, Axis::kDp), 6u);
}

TEST(RankGrid, with_changes_one_coordinate_and_no_other) {
  for_each_grid([](const RankGrid& grid) {
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
  for_each_grid([](const RankGrid& grid) {
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

TEST(RankGrid, a_group_agrees_on_every_axis_it_does_not_span) {
  for_each_grid([](const RankGrid& grid) {
    for (size_t r = 0; r < grid.ranks(); ++r) {
      const RankId rank(r);
      for (const Communicator c : kAll) {
        for (size_t i = 0; i < grid.group_size(c); ++i) {
          const RankId other = grid.member(grid.group_of(rank, c), c, i);
          // What each communicator spans: kTensor tp, kContext cp, kGradient cp and dp.
          const auto agrees_on = [&](Axis axis, bool spanned) {
            return spanned || c == Communicator::kWorld ||
                   grid.coordinate(rank, axis) == grid.coordinate(other, axis);
          };
          ASSERT_TRUE(agrees_on(Axis::kTp, c == Communicator::kTensor));
          ASSERT_TRUE(
              agrees_on(Axis::kCp, c == Communicator::kContext || c == Communicator::kGradient));
          ASSERT_TRUE(agrees_on(Axis::kPp, false));
          ASSERT_TRUE(agrees_on(Axis::kDp, c == Communicator::kGradient));
        }
      }
    }
  });
}

TEST(RankGrid, a_million_ranks_cost_nothing_to_describe) {
  const RankGrid grid(8, 1, 16, 8192);
  EXPECT_EQ(grid.ranks(), 1048576u);
  EXPECT_EQ(grid.group_size(Communicator::kGradient), 8192u);
  EXPECT_EQ(grid.group_count(Communicator::kGradient), 128u);
  EXPECT_LE(sizeof(RankGrid), 256u);
}

}  // namespace
}  // namespace herdsim

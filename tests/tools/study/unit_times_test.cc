#include "tools/study/unit_times.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

// Steps by hand: a kernel, or a transfer of a stream that takes `taken` from kernels beside it.
struct Steps {
  WorkTemplate steps;
  LeastCosts costs;
  TypedVector<WorkId, Work> works;

  int add(Stream stream, int64_t time, int64_t taken, std::vector<int> after) {
    Work work;
    work.stream = stream;
    work.kind = stream == Stream::kCompute ? WorkKind::kCompute : WorkKind::kCollective;
    steps.push_back({WorkId(works.size()), std::move(after)});
    works.push_back(work);
    costs.push_back({time, taken});
    return static_cast<int>(steps.size()) - 1;
  }
  int kernel(int64_t time, std::vector<int> after) {
    return add(Stream::kCompute, time, 0, std::move(after));
  }
  int transfer(int64_t time, int64_t taken, std::vector<int> after, Stream stream = Stream::kTp) {
    return add(stream, time, taken, std::move(after));
  }
  UnitTimes times() const { return unit_times(steps, costs, works); }
};

ChunkTimes repeated(const UnitTimes& unit, int times) {
  ChunkTimes chunk;
  for (int i = 0; i < times; ++i) chunk.add(unit);
  return chunk;
}

TEST(UnitTimes, of_steps_one_after_another_are_their_sums) {
  Steps s;
  const int gather = s.transfer(7, 1, {kBefore});
  const int first = s.kernel(100, {gather});
  const int middle = s.transfer(20, 2, {first});
  const int second = s.kernel(50, {middle});
  s.transfer(9, 1, {second});
  const UnitTimes unit = s.times();
  EXPECT_EQ(unit.lead, 7);
  EXPECT_EQ(unit.occupied, 170);
  EXPECT_EQ(unit.rest, 179);
  EXPECT_EQ(unit.whole, 186);
  EXPECT_EQ(unit.tail, 177);
  // Nothing of it can hide within a pass; at a pass's edges kernels of others may be beside it.
  const ChunkTimes chunk = repeated(unit, 3);
  EXPECT_EQ(chunk.whole(), 3 * 186);
  EXPECT_EQ(chunk.occupied(), 3 * 186 - 7 - 9);
  EXPECT_EQ(chunk.demand(), chunk.occupied() + 1 + 1);
  EXPECT_EQ(chunk.ahead(), 1);
  EXPECT_EQ(chunk.behind(), 1);
  EXPECT_EQ(chunk.idle(), 3 * 20 + 2 * (7 + 9));
}

// A kernel of 100 beside a transfer, and another behind both.
UnitTimes beside(int64_t time, int64_t taken) {
  Steps s;
  const int first = s.kernel(10, {kBefore});
  const int hidden = s.transfer(time, taken, {first});
  const int wide = s.kernel(100, {first});
  s.kernel(10, {wide, hidden});
  return s.times();
}

TEST(UnitTimes, a_hidden_transfer_slows_the_kernel_beside_it) {
  EXPECT_EQ(beside(60, 0).occupied, 120);
  EXPECT_EQ(beside(60, 12).occupied, 132);
  EXPECT_EQ(beside(60, 12).rest, 132);
}

TEST(UnitTimes, a_transfer_longer_than_what_is_beside_it_shows_with_the_rest) {
  EXPECT_EQ(beside(150, 0).occupied, 170);
  EXPECT_EQ(beside(150, 30).occupied, 170);  // the kernel beside it has time to spare
  EXPECT_EQ(beside(110, 30).occupied, 150);  // here it has not
}

TEST(UnitTimes, transfers_without_an_order_may_hide_in_each_other) {
  Steps s;
  const int first = s.kernel(10, {kBefore});
  const int a = s.transfer(40, 4, {first});
  const int b = s.transfer(50, 5, {first}, Stream::kCp);
  s.kernel(10, {a, b});
  EXPECT_EQ(s.times().occupied, 70);  // the longest path
  EXPECT_EQ(s.times().to_last_kernel.adds, 9);
}

// A gradient of weights that the input's gradient does not wait for.
TEST(UnitTimes, kernels_that_the_output_does_not_wait_for_still_run) {
  Steps s;
  const int input = s.kernel(100, {kBefore});
  s.kernel(80, {kBefore});
  s.transfer(30, 3, {input});
  const UnitTimes unit = s.times();
  EXPECT_EQ(unit.rest, 130);
  EXPECT_EQ(unit.occupied, 180);
  EXPECT_EQ(unit.kernels_to_output, 100);
  // The next unit's kernels queue behind it: 4 kernels, and a transfer that the second hides.
  const ChunkTimes chunk = repeated(unit, 2);
  EXPECT_EQ(chunk.occupied(), 2 * 180 + 3);
  EXPECT_EQ(chunk.whole(), 180 + 3 + 100 + 30);
}

TEST(UnitTimes, the_least_of_two_is_below_both) {
  const UnitTimes a = beside(60, 12), b = beside(150, 30), both = least(a, b);
  EXPECT_EQ(both.occupied, 132);
  EXPECT_EQ(both.to_last_kernel.adds, 12);
  EXPECT_FALSE(least(a, UnitTimes{}).exists);
}

}  // namespace
}  // namespace herdsim

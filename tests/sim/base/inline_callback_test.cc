#include "sim/base/inline_callback.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace herdsim {
namespace {

TEST(InlineCallback, calls_what_it_holds_wherever_it_was_moved) {
  int calls = 0;
  InlineCallback first = [&calls] { ++calls; };
  InlineCallback second = std::move(first);
  EXPECT_FALSE(first);
  ASSERT_TRUE(second);
  second();
  InlineCallback third;
  EXPECT_FALSE(third);
  third = std::move(second);
  third();
  EXPECT_EQ(calls, 2);
}

TEST(InlineCallback, destroys_its_capture_exactly_once) {
  const auto owned = std::make_shared<int>(1);
  {
    InlineCallback a = [owned] {};
    EXPECT_EQ(owned.use_count(), 2);
    InlineCallback b = std::move(a);
    EXPECT_EQ(owned.use_count(), 2);
    a = [] {};
    b = std::move(a);
    EXPECT_EQ(owned.use_count(), 1) << "assigning over a callable did not destroy it";
    b = [owned] {};
    b.reset();
    EXPECT_EQ(owned.use_count(), 1);
    b = [owned] {};
  }
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(InlineCallback, holds_48_bytes_and_move_only_captures) {
  std::array<int64_t, 6> full = {1, 2, 3, 4, 5, 6};
  int64_t sum = 0;
  static_assert(sizeof(full) == InlineCallback::kCapacity);
  InlineCallback big = [full] { EXPECT_EQ(full[5], 6); };
  big();
  InlineCallback unique = [p = std::make_unique<int64_t>(7), &sum] { sum += *p; };
  InlineCallback moved = std::move(unique);
  moved();
  EXPECT_EQ(sum, 7);
}

TEST(InlineCallback, keeps_state_between_calls) {
  int seen = 0;
  InlineCallback counter = [n = 0, &seen]() mutable { seen = ++n; };
  counter();
  counter();
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace herdsim

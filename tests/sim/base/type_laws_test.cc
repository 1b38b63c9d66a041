// The laws of Duration, Instant, the units and ids: what must hold for every value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <type_traits>

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

namespace herdsim {
namespace {

constexpr std::array<int64_t, 11> kTicks = {0,
                                            1,
                                            -1,
                                            7,
                                            1'000'000'007,
                                            -1'000'000'007,
                                            INT64_MAX / 2,
                                            INT64_MAX / 2 + 1,
                                            INT64_MAX - 1,
                                            INT64_MAX,
                                            INT64_MIN + 1};

TEST(Duration, sums_saturate_and_never_wrap) {
  for (const int64_t a : kTicks) {
    for (const int64_t b : kTicks) {
      const Int128 sum = Int128{a} + b;
      const Duration got = nanoseconds(a) + nanoseconds(b);
      if (sum >= INT64_MAX) {
        EXPECT_EQ(got, Duration::infinite()) << a << " + " << b;
      } else if (sum <= INT64_MIN) {
        EXPECT_EQ(got.nanoseconds(), INT64_MIN) << a << " + " << b;
      } else if (a != INT64_MAX && b != INT64_MAX) {
        EXPECT_EQ(got.nanoseconds(), static_cast<int64_t>(sum)) << a << " + " << b;
      }
    }
  }
}

TEST(Duration, infinity_absorbs_what_is_added_taken_away_and_multiplied) {
  for (const int64_t a : {int64_t{0}, int64_t{1}, int64_t{1'000'000'007}, INT64_MAX}) {
    EXPECT_EQ(Duration::infinite() + nanoseconds(a), Duration::infinite());
    EXPECT_EQ(Duration::infinite() - nanoseconds(a), Duration::infinite());
    EXPECT_EQ(Instant::never() + nanoseconds(a), Instant::never());
  }
  EXPECT_EQ(Duration::infinite() * 2, Duration::infinite());
  EXPECT_EQ(days(200'000), Duration::infinite()) << "547 years are beyond the clock";
  EXPECT_TRUE(days(106'000).is_finite()) << "290 years are not";
  EXPECT_FALSE(Duration::infinite().is_finite());
}

TEST(Duration, is_ordered_as_its_ticks) {
  for (const int64_t a : kTicks) {
    for (const int64_t b : kTicks) {
      EXPECT_EQ(nanoseconds(a) <=> nanoseconds(b), a <=> b);
      EXPECT_EQ(Instant::from_nanoseconds(a) <=> Instant::from_nanoseconds(b), a <=> b);
    }
  }
  EXPECT_EQ(microseconds(1), nanoseconds(1'000));
  EXPECT_EQ(milliseconds(1), microseconds(1'000));
  EXPECT_EQ(seconds(1), milliseconds(1'000));
  EXPECT_EQ(days(1), seconds(86'400));
}

TEST(Duration, real_seconds_become_ticks_rounded_up_so_that_nothing_ends_early) {
  EXPECT_EQ(seconds_rounded_up(0.5e-9), nanoseconds(1));
  EXPECT_EQ(seconds_rounded_up(1.0000000001e-9), nanoseconds(2));
  EXPECT_EQ(seconds_rounded_up(0.25), milliseconds(250));
  EXPECT_EQ(seconds_rounded_up(0), Duration::zero());
  EXPECT_EQ(seconds_rounded_up(-3), Duration::zero());
  EXPECT_EQ(seconds_rounded_up(1e10), Duration::infinite());
  EXPECT_EQ(seconds_rounded_up(std::numeric_limits<double>::infinity()), Duration::infinite());
  EXPECT_EQ(seconds_rounded_up(std::numeric_limits<double>::quiet_NaN()), Duration::infinite());
  for (double s = 1e-9; s < 1e9; s *= 1.7) EXPECT_GE(seconds_rounded_up(s).nanoseconds(), s * 1e9);
}

TEST(Instant, differences_and_sums_are_inverse) {
  const Instant a = Instant::from_nanoseconds(123), b = Instant::from_nanoseconds(1'000'000);
  EXPECT_EQ(a + (b - a), b);
  EXPECT_EQ(b + (a - b), a);
  EXPECT_EQ(Instant::start() + a.since_start(), a);
}

TEST(Units, the_words_for_one_amount_agree_and_those_for_different_amounts_do_not) {
  EXPECT_EQ(gigabits_per_second(400), gigabytes_per_second(50));
  EXPECT_EQ(mebibytes(1), kibibytes(1024));
  EXPECT_LT(gigabytes(80), gibibytes(80));
  EXPECT_EQ(gigabytes(1), megabytes(1000));
  EXPECT_EQ(teraflops(989).teraflops(), 989);
}

TEST(Units, bytes_over_bandwidth_is_exact_where_it_can_be) {
  EXPECT_EQ(gigabytes(1) / gigabits_per_second(400), milliseconds(20));
  EXPECT_EQ(Bytes(1) / Bandwidth::from_bytes_per_second(1'000'000'000), nanoseconds(1));
  // A double would lose the last nanosecond of this one.
  EXPECT_EQ(Bytes(9'007'199'254'740'993) / Bandwidth::from_bytes_per_second(1'000'000'000),
            nanoseconds(9'007'199'254'740'993));
}

TEST(Units, bytes_over_bandwidth_is_the_first_tick_by_which_all_has_passed) {
  for (const int64_t amount :
       {int64_t{1}, int64_t{7}, int64_t{1'000'003}, int64_t{50'000'000'021}}) {
    for (const int64_t rate :
         {int64_t{1}, int64_t{3}, int64_t{999'999'937}, int64_t{48'500'000'000}}) {
      const int64_t ticks = (Bytes(amount) / Bandwidth::from_bytes_per_second(rate)).nanoseconds();
      if (ticks == INT64_MAX) {
        EXPECT_GT(Int128{amount} * 1'000'000'000 / rate, INT64_MAX - 1);
        continue;
      }
      EXPECT_GE(Int128{ticks} * rate, Int128{amount} * 1'000'000'000);
      EXPECT_LT(Int128{ticks - 1} * rate, Int128{amount} * 1'000'000'000);
    }
  }
  EXPECT_EQ(gigabytes(1) / Bandwidth(), Duration::infinite());
  EXPECT_EQ(Bytes() / Bandwidth(), Duration::zero());
}

TEST(Units, dividing_bytes_rounds_up_and_dividing_bandwidth_rounds_down) {
  for (int64_t n = 1; n <= 20; ++n) {
    for (int64_t amount = 0; amount <= 50; ++amount) {
      EXPECT_GE(Bytes(amount) / n * n, Bytes(amount));
      EXPECT_LT((Bytes(amount) / n).count() * n, amount + n);
      const Bandwidth whole = Bandwidth::from_bytes_per_second(amount);
      EXPECT_LE(whole / n * n, whole);
    }
  }
}

TEST(Units, a_ratio_is_within_zero_and_one) {
  EXPECT_EQ(Ratio(-0.1), Ratio(0));
  EXPECT_EQ(Ratio(1.5), Ratio(1));
  EXPECT_EQ(gigabytes_per_second(50) * Ratio(0.97),
            Bandwidth::from_bytes_per_second(48'500'000'000));
}

template <class A, class B>
concept Adds = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Equals = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Divides = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Converts = std::is_convertible_v<A, B>;
template <class Container, class Key>
concept Indexes = requires(Container c, Key k) {
  c[k];
};

// must_not_compile.sh shows a few of these to the compiler outside of any template.
TEST(Types, what_has_no_meaning_does_not_compile) {
  static_assert(Adds<Bytes, Bytes> && Adds<Instant, Duration> && Divides<Bytes, Bandwidth>);
  static_assert(!Adds<Bytes, Bandwidth> && !Adds<Bytes, int> && !Adds<Bytes, Duration>);
  static_assert(!Adds<Instant, Instant> && !Adds<LinkId, int> && !Divides<Bandwidth, Bytes>);
  static_assert(Compares<Bytes, Bytes> && Equals<LinkId, LinkId>);
  static_assert(!Compares<Bytes, Bandwidth> && !Compares<Instant, Duration>);
  static_assert(!Equals<LinkId, FlowId> && !Equals<LinkId, size_t>);
  static_assert(!Converts<int64_t, Bytes> && !Converts<int64_t, Duration> &&
                !Converts<double, Ratio>);
  static_assert(!Converts<Ratio, double> && !Converts<Instant, Duration> &&
                !Converts<size_t, LinkId>);
  static_assert(!Converts<LinkId, FlowId> && !std::is_constructible_v<LinkId, FlowId>);
  static_assert(Indexes<TypedVector<LinkId, int>, LinkId>);
  static_assert(!Indexes<TypedVector<LinkId, int>, FlowId> &&
                !Indexes<TypedVector<LinkId, int>, int>);
}

TEST(TypedVector, push_back_returns_the_id_of_what_it_stored) {
  TypedVector<LinkId, int> values;
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(values.push_back(5), LinkId(0));
  const LinkId second = values.push_back(6);
  EXPECT_EQ(values[second], 6);
  EXPECT_EQ(values.size(), 2u);
}

}  // namespace
}  // namespace herdsim

#include "sim/base/text.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

TEST(Text, three_significant_digits_and_the_unit_that_suits) {
  EXPECT_EQ(to_text(milliseconds(6220)), "6.22 s");
  EXPECT_EQ(to_text(microseconds(1200)), "1.2 ms");
  EXPECT_EQ(to_text(milliseconds(20)), "20 ms");
  EXPECT_EQ(to_text(nanoseconds(0)), "0 ns");
  EXPECT_EQ(to_text(nanoseconds(-1500)), "-1.5 us");
  EXPECT_EQ(to_text(seconds(119)), "119 s");
  EXPECT_EQ(to_text(seconds(120)), "2 min");
  EXPECT_EQ(to_text(days(54)), "54 d");
  EXPECT_EQ(to_text(Duration::infinite()), "never");
  EXPECT_EQ(to_text(gigabits_per_second(388)), "48.5 GB/s");
  EXPECT_EQ(to_text(Bytes(79'200'000'000)), "79.2 GB");
  EXPECT_EQ(to_text(Bytes(512)), "512 B");
  EXPECT_EQ(to_text(Ratio(0.413)), "41.3 %");
  EXPECT_EQ(to_text(Ratio(1)), "100.0 %");
  EXPECT_EQ(to_text(teraflops(400)), "400 TFLOP/s");
  EXPECT_EQ(to_text(Flops(2.43e21)), "2.43 ZFLOP");
}

TEST(Text, rounding_up_moves_to_the_next_unit_and_drops_a_digit) {
  EXPECT_EQ(to_text(nanoseconds(999'949)), "1 ms");
  EXPECT_EQ(to_text(nanoseconds(999'400)), "999 us");
  EXPECT_EQ(to_text(Bytes(9'996)), "10 kB");
  EXPECT_EQ(to_text(Bytes(99'960)), "100 kB");
}

TEST(Text, lowers_the_letters_of_ascii_alone) {
  EXPECT_EQ(lower_case("BF16 Z_a[1]@"), "bf16 z_a[1]@");
  EXPECT_EQ(lower_case("\xc3\x84"), "\xc3\x84");
}

TEST(Text, quotes_csv_fields_only_where_a_reader_would_split_them) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Text, counts_have_commas) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(16'384), "16,384");
  EXPECT_EQ(count_text(-1'234'567), "-1,234,567");
}

TEST(Text, what_is_printed_reads_back_to_within_half_of_the_third_digit) {
  for (int64_t n = 1; n < INT64_MAX / 8; n = n * 7 / 3 + 1) {
    const double exact = static_cast<double>(n);
    const auto duration = duration_from_text(to_text(nanoseconds(n)));
    ASSERT_TRUE(duration) << to_text(nanoseconds(n));
    EXPECT_NEAR(static_cast<double>(duration->nanoseconds()) / exact, 1, 0.00501);
    if (n > 1'000'000'000'000'000) continue;
    const auto amount = bytes_from_text(to_text(Bytes(n)));
    ASSERT_TRUE(amount) << to_text(Bytes(n));
    EXPECT_NEAR(static_cast<double>(amount->count()) / exact, 1, 0.00501);
    const Bandwidth rate = Bandwidth::from_bytes_per_second(n);
    if (n > 900'000'000'000'000) continue;  // PB/s is written, never read
    const auto bandwidth = bandwidth_from_text(to_text(rate));
    ASSERT_TRUE(bandwidth) << to_text(rate);
    EXPECT_NEAR(static_cast<double>(bandwidth->bytes_per_second()) / exact, 1, 0.00501);
  }
}

TEST(Text, reading_is_exact) {
  EXPECT_EQ(duration_from_text("0.1 s"), milliseconds(100));
  EXPECT_EQ(duration_from_text("1.000000001s"), nanoseconds(1'000'000'001));
  EXPECT_EQ(duration_from_text("1.5 h"), seconds(5400));
  EXPECT_EQ(bytes_from_text("80 GiB"), gibibytes(80));
  EXPECT_EQ(bytes_from_text("0.1 GB"), megabytes(100));
  EXPECT_EQ(bandwidth_from_text("400 Gb/s"), gigabytes_per_second(50));
  EXPECT_EQ(bandwidth_from_text("48.5 GB/s"), gigabits_per_second(388));
  EXPECT_EQ(ratio_from_text("41.3 %"), Ratio(0.413));
  EXPECT_EQ(ratio_from_text("0.413"), Ratio(0.413));
  EXPECT_EQ(ratio_from_text("1"), Ratio(1));
  EXPECT_EQ(duration_from_text("0.5 ns"), nanoseconds(1)) << "halves round up";
  EXPECT_EQ(duration_from_text("0.4 ns"), nanoseconds(0));
}

TEST(Text, what_is_not_of_the_form_is_refused) {
  for (const char* text :
       {"", " ", "s", "1", "1 parsec", "-1 s", "1e3 s", "1..2 s", ".", ". s", "1. s", "1 s ",
        " 1 s", "1,000 s", "1 S", "9999999999999999999 s", "300000 d", "never"}) {
    EXPECT_FALSE(duration_from_text(text)) << '"' << text << '"';
  }
  for (const char* text : {"1 gb", "1 Gb", "1 GB/s", "1", "99999999 PB"}) {
    EXPECT_FALSE(bytes_from_text(text)) << '"' << text << '"';
  }
  for (const char* text : {"400 Gbps", "400 GB", "400"}) {
    EXPECT_FALSE(bandwidth_from_text(text)) << '"' << text << '"';
  }
  for (const char* text : {"1.01", "101 %", "-0.1", "41 percent"}) {
    EXPECT_FALSE(ratio_from_text(text)) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace herdsim

#include "sim/reliability/failure_log.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

TEST(FailureLog, gives_the_gaps_and_the_rate_of_each_class) {
  const FailureLog log = parse_failure_log(
      "time_h,host,class\n0,a,nic\n1,b,ssd\n3,e,ssd\r\n10,c,nic\n16,d,nic\n\n", "log.csv", 8);
  ASSERT_EQ(log.classes.size(), 2u);
  EXPECT_EQ(log.classes[0].name, "nic");
  EXPECT_EQ(log.classes[0].gaps_seconds, (std::vector<double>{6 * 3600, 10 * 3600}));
  EXPECT_DOUBLE_EQ(log.classes[0].rate_per_hour, 1.0 / 8 / 8);
  EXPECT_DOUBLE_EQ(log.classes[1].mean_gap_seconds, 7200);
  EXPECT_TRUE(log.warnings.empty());
}

TEST(FailureLog, reads_what_spreadsheets_write) {
  const FailureLog log = parse_failure_log(
      "\xEF\xBB\xBF\"host\",\"time_h\",\"class\"\r\n\"rack 1, host 3\",\"0\",\"nic\"\r\n"
      "\"rack 1, host 4\",\"2.5\",\"nic\"\r\n",
      "log.csv", 8);
  ASSERT_EQ(log.classes.size(), 1u);
  EXPECT_EQ(log.classes[0].gaps_seconds, (std::vector<double>{2.5 * 3600}));
}

// In whatever zone each row is: the order and the gaps are those of UTC.
TEST(FailureLog, reads_timestamps_of_any_zone) {
  const FailureLog log = parse_failure_log(
      "time,class\n2024-02-28T23:30:00Z,nic\n2024-02-29 01:30:00+02:00,nic\n"
      "2024-02-28T19:30:00.5-05:00,nic\n2024-03-01T00:30:00,nic\n",
      "log.csv", 8);
  ASSERT_EQ(log.classes.size(), 1u);
  EXPECT_EQ(log.classes[0].gaps_seconds, (std::vector<double>{0, 3600.5, 86'399.5}));
  for (const std::string_view stamp :
       {"2024-02-30T00:00:00Z", "2024-02-28T24:00:00Z", "2024-02-28", "28.02.2024 10:00:00", "",
        "2024-02-28T10:00:00+2", "2024-02-28T10:00:00 CET", "2024-02-28T-1:00:00Z", "12"}) {
    EXPECT_THROW(parse_failure_log("time,class\n2024-01-01T00:00:00Z,nic\n" + std::string(stamp) +
                                       ",nic\n2024-04-01T00:00:00Z,nic\n",
                                   "log.csv", 8),
                 SpecError)
        << stamp;
  }
}

TEST(FailureLog, a_class_of_one_failure_keeps_its_law_and_says_so) {
  const FailureLog log =
      parse_failure_log("class,time_s\nnic,100\nnic,300\nssd,305\n", "log.csv", 8);
  EXPECT_EQ(log.classes[0].gaps_seconds, (std::vector<double>{200}));
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_NE(log.warnings[0].find("ssd: fewer than two"), std::string::npos);
}

TEST(FailureLog, names_every_broken_row_with_its_line) {
  try {
    parse_failure_log("time_s,class\n1,nic\nsoon,nic\n3\n4,nick\nnan,nic\n2,nic\n", "log.csv", 8);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    ASSERT_EQ(error.faults().size(), 5u) << error.what();
    EXPECT_EQ(error.faults()[0].line, 3);
    EXPECT_EQ(error.faults()[1].line, 4);
    EXPECT_EQ(error.faults()[2].nearest, "nic");
    EXPECT_EQ(error.faults()[3].line, 6);
    EXPECT_EQ(error.faults()[4].line, 7);
    EXPECT_EQ(error.faults()[4].problem, "2 is before 4 of line 5");
  }
}

TEST(FailureLog, refuses_files_that_are_no_log) {
  for (const std::string_view text :
       {"", "a,b\n1,2\n", "time_s,class\n", "time_s,class\n1,nic\n", "time_s,class\n1,nic\n1,nic\n",
        "time_h,class\n1e308,nic\n1.7e308,nic\n"}) {
    EXPECT_THROW(parse_failure_log(text, "log.csv", 8), SpecError) << text;
  }
}

}  // namespace
}  // namespace herdsim

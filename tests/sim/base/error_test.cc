#include "sim/base/error.h"

#include <gtest/gtest.h>

#include "sim/base/check.h"

namespace herdsim {
namespace {

TEST(Fault, says_where_what_and_what_would_be_right) {
  const Fault fault{.file = "cluster.textproto",
                    .line = 14,
                    .column = 3,
                    .field = "topology.rails",
                    .problem = "3 does not divide gpus_per_node (8)",
                    .allowed = "1, 2, 4, 8",
                    .nearest = "4"};
  EXPECT_EQ(fault.text(),
            "cluster.textproto:14:3: topology.rails: 3 does not divide gpus_per_node (8); allowed: "
            "1, 2, 4, "
            "8; did you mean \"4\"?");
}

TEST(Fault, leaves_out_what_is_not_known) {
  EXPECT_EQ((Fault{.problem = "no such thing"}).text(), "no such thing");
  EXPECT_EQ((Fault{.field = "seed", .problem = "is negative"}).text(), "seed: is negative");
}

TEST(Fault, quotes_control_characters_by_their_code) {
  EXPECT_EQ((Fault{.field = "--set name=a\nb", .problem = "\x1b[31m\x7f is \"\xc3\xa9\""}).text(),
            "--set name=a\\x0ab: \\x1b[31m\\x7f is \"\xc3\xa9\"");
}

TEST(Faults, are_thrown_together) {
  Faults faults;
  EXPECT_NO_THROW(faults.throw_if_any());
  faults.add({.field = "a", .problem = "one"});
  faults.add({.field = "b", .problem = "two"});
  try {
    faults.throw_if_any();
    FAIL() << "nothing was thrown";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.faults().size(), 2u);
    EXPECT_STREQ(error.what(), "a: one\nb: two");
  }
}

TEST(NearestName, finds_a_misspelling_and_nothing_for_a_stranger) {
  const std::vector<std::string> names = {"ring", "tree", "nvls", "nvls_tree"};
  EXPECT_EQ(nearest_name("rnig", names), "ring");
  EXPECT_EQ(nearest_name("nvls_tre", names), "nvls_tree");
  EXPECT_EQ(nearest_name("dragonfly", names), "");
  EXPECT_EQ(nearest_name("ring", {}), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), names), "");
}

TEST(CheckDeathTest, prints_the_condition_and_the_detail) {
  const int rank = 7;
  EXPECT_DEATH(HERDSIM_CHECK(rank < 4) << "rank " << rank, "check failed: rank < 4 rank 7");
}

}  // namespace
}  // namespace herdsim

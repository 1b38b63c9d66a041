#include "sim/models/host_stalls.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

TEST(HostStalls, a_collective_waits_for_whichever_of_its_ranks_is_stalled) {
  EXPECT_EQ(stall_microseconds({.probability = 0}, 1024), 0);
  for (const double probability : {0.001, 0.08, 0.5, 1.0}) {
    const HostStalls stalls{.probability = probability, .microseconds = 3000};
    EXPECT_NEAR(stall_microseconds(stalls, 1), 3000 * probability, 1e-9);
    for (int64_t ranks = 2; ranks <= 1024; ranks *= 2) {
      const double few = stall_microseconds(stalls, ranks / 2);
      const double many = stall_microseconds(stalls, ranks);
      EXPECT_GE(many, few) << ranks;
      EXPECT_LE(many, 2 * few) << ranks;  // two stalls at once cost one
      EXPECT_LE(many, 3000) << ranks;
    }
  }
}

TEST(HostStalls, rare_ones_add_up) {
  EXPECT_NEAR(stall_microseconds({.probability = 1e-4, .microseconds = 4000}, 8), 8 * 0.4, 0.002);
}

}  // namespace
}  // namespace herdsim

// Use of links as a share of what they can carry.
#include <gtest/gtest.h>

#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

TEST(LinkUse, of_links_that_are_down_when_the_step_begins_is_a_share) {
  const Scenario scenario =
      load_scenario("mixtral-8x7b-128", {"cluster.base=deepseek-mpft-2k", "recovery.spares=0",
                                         "cluster.degraded=[{plane: 0 down: true for_s: 0.1}, "
                                         "{gpu: 9 nic_factor: 0 for_s: 0.1}]"});
  const StepResult result = simulate_step(scenario, {}).result;
  ASSERT_FALSE(result.tiers.empty());
  for (const TierUse& tier : result.tiers) {
    EXPECT_GT(tier.highest_use, 0) << tier.tier;
    EXPECT_LE(tier.highest_use, 1) << tier.tier;
  }
}

}  // namespace
}  // namespace herdsim

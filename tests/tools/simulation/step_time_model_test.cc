// The simulated step as a campaign asks for it.
#include "tools/simulation/step_time_model.h"

#include <gtest/gtest.h>

#include "sim/base/rng.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

// 4 replicas of 2 stages of 2 ranks.
Scenario small_job() {
  return load_scenario(
      "llama3-8b-1024",
      {"gpus=16", "parallel.tp=2", "parallel.cp=1", "parallel.pp=2", "parallel.dp=4",
       "parallel.virtual_stages=1", "training.schedule=1f1b", "model.layers=4",
       "training.sequence_length=1024", "training.global_batch=16"});
}

Condition random_condition(RngStream& random, int64_t gpus) {
  Condition condition;
  const auto below = [&](int64_t n) {
    return std::min(n - 1, static_cast<int64_t>(random.uniform() * static_cast<double>(n)));
  };
  for (int64_t gpu = 0; gpu < gpus; ++gpu) {
    if (below(5) != 0) continue;
    const bool network = below(3) == 0;
    const auto speed = static_cast<int32_t>(10 * (50 + below(50)));
    condition.slow.push_back({.gpu = gpu,
                              .compute_permille = network ? 1000 : speed,
                              .nic_permille = network ? speed : 1000});
  }
  return condition;
}

TEST(SimulatedStepTime, the_representative_of_a_condition_takes_as_long) {
  const Scenario scenario = small_job();
  const SimulatedStepTime model(scenario);
  RngStream random(5, "tests/conditions", 0);
  size_t parts = 0, kept = 0;
  for (int i = 0; i < 6; ++i) {
    const Condition condition = random_condition(random, scenario.gpus);
    const Condition same = model.canonical(condition);
    EXPECT_EQ(model.canonical(same), same) << i;
    const double full = model.step_time(condition).seconds();
    EXPECT_NEAR(model.step_time(same).seconds() / full, 1, 1e-3) << i;
    parts += condition.slow.size();
    kept += same.slow.size();
  }
  EXPECT_LT(kept, parts);
}

TEST(SimulatedStepTime, where_a_slow_part_sits_in_its_stage_and_replica_does_not_matter) {
  const Scenario scenario = small_job();
  const SimulatedStepTime model(scenario);
  const auto of = [&](std::vector<SlowPart> slow) {
    return model.canonical({.slow = std::move(slow)});
  };
  const SlowPart stage0{.gpu = 0, .compute_permille = 800};
  // Ranks 0, 1 are stage 0 of the first replica, 4 and 5 of the second; 2 and 3 are its stage 1.
  EXPECT_EQ(of({{.gpu = 5, .compute_permille = 800}}).slow, std::vector{stage0});
  EXPECT_EQ(of({stage0, {.gpu = 5, .compute_permille = 900}}).slow, std::vector{stage0});
  EXPECT_EQ(of({{.gpu = 2, .compute_permille = 800}}).slow.front().gpu, 2);
  EXPECT_EQ(of({stage0, {.gpu = 6, .compute_permille = 700}}).slow.size(), 2U);
  // A slow GPU and another replica's slow NIC of the same stage share a ring or do not.
  const SlowPart nic0{.gpu = 4, .nic_permille = 500}, nic1{.gpu = 5, .nic_permille = 500};
  EXPECT_NE(of({stage0, nic0}), of({stage0, nic1}));
  EXPECT_EQ(of({{.gpu = 1, .compute_permille = 800}, nic1}), of({stage0, nic0}));
}

}  // namespace
}  // namespace herdsim

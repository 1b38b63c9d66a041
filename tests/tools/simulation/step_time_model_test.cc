// The simulated step as a campaign asks for it.
#include "tools/simulation/step_time_model.h"

#include <gtest/gtest.h>

#include "sim/base/rng.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/composed_step_time.h"
#include "tools/simulation/simulate_step.h"
#include "tools/simulation/slowed_job.h"

namespace herdsim {
namespace {

// 4 replicas of 2 stages of 2 ranks.
Scenario job_of_16() {
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
  const Scenario scenario = job_of_16();
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

// To the tick, on a machine that is degraded already as on a sound one.
TEST(SlowedJob, takes_as_long_as_the_step_with_those_gpus_degraded) {
  for (const bool degraded : {false, true}) {
    Scenario scenario = job_of_16();
    if (degraded)
      scenario.cluster.degraded.push_back({.gpu = 3, .compute_factor = 0.8, .nic_factor = 0.5});
    const SlowedJob job(scenario);
    for (const std::vector<SlowPart>& slow :
         {std::vector<SlowPart>{},
          {{.gpu = 2, .compute_permille = 700}},
          {{.gpu = 3, .compute_permille = 900}, {.gpu = 12, .compute_permille = 500}}}) {
      Scenario plain = scenario;
      for (const SlowPart& part : slow)
        plain.cluster.degraded.push_back(
            {.gpu = part.gpu, .compute_factor = part.compute_permille / 1000.0});
      EXPECT_EQ(job.step_time(slow), simulate_step(plain, {}).result.step_time);
    }
  }
}

TEST(SimulatedStepTime, where_a_slow_part_sits_in_its_stage_and_replica_does_not_matter) {
  const Scenario scenario = job_of_16();
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
  // The host's other slow GPU of that stage is never waited for; its slow NIC is, and a lost NIC
  // leaves half of its neighbour's, which is more than 40 %.
  EXPECT_EQ(of({stage0, {.gpu = 1, .compute_permille = 900}}).slow, std::vector{stage0});
  EXPECT_EQ(of({stage0, {.gpu = 1, .nic_permille = 900}}).slow.size(), 2U);
  const SlowPart nic40{.gpu = 0, .nic_permille = 400};
  EXPECT_EQ(of({nic40, {.gpu = 1, .nic_permille = 0}}).slow, std::vector{nic40});
  // A slow GPU and another replica's slow NIC of the same stage share a ring or do not.
  const SlowPart nic0{.gpu = 4, .nic_permille = 500}, nic1{.gpu = 5, .nic_permille = 500};
  EXPECT_NE(of({stage0, nic0}), of({stage0, nic1}));
  EXPECT_EQ(of({{.gpu = 1, .compute_permille = 800}, nic1}), of({stage0, nic0}));
}

// Forgets nothing, and counts what had to be simulated.
struct Composed {
  explicit Composed(const Scenario& scenario)
      : simulated(scenario),
        exact(simulated),
        model(exact, scenario.plan, scenario.cluster.gpus_per_host) {}
  SimulatedStepTime simulated;
  MemoisedStepTime exact;
  ComposedStepTime model;
};

// Two to four slow parts anywhere in jobs bound by computation and by the network.
TEST(ComposedStepTime, is_close_to_the_condition_simulated_as_a_whole) {
  for (const char* name : {"llama3-8b-1024", "llama3-70b-8192"}) {
    const Scenario scenario = load_scenario(name);
    const Composed composed(scenario);
    RngStream random(6, "tests/conditions", 0);
    for (size_t i = 0; i < 5; ++i) {
      Condition condition{.clock_permille = 990, .job_permille = 1010};
      for (size_t k = 0; k < 2 + i % 3; ++k) {
        const auto gpu =
            static_cast<int64_t>(random.uniform() * static_cast<double>(scenario.gpus - 1));
        const bool network = random.uniform() < 0.5;
        const int32_t speed = 500 + 10 * static_cast<int32_t>(random.uniform() * 45);
        condition.slow.push_back({.gpu = gpu,
                                  .compute_permille = network ? 1000 : speed,
                                  .nic_permille = network ? speed : 1000});
      }
      std::sort(condition.slow.begin(), condition.slow.end());
      const double whole = composed.exact.step_time(condition).seconds();
      EXPECT_NEAR(composed.model.step_time(condition).seconds() / whole, 1, 0.005)
          << name << " " << i;
    }
    const Condition clock{.clock_permille = 985};
    EXPECT_EQ(composed.model.step_time(clock), composed.exact.step_time(clock));
  }
}

// At every hour's clock the same parts are slow: one simulated step for all of them.
TEST(ComposedStepTime, small_jobs_simulate_all_slow_parts_together_once) {
  const Scenario scenario = load_scenario("mixtral-8x7b-128");
  const Composed composed(scenario);
  RngStream random(6, "tests/conditions", 0);
  Condition condition = random_condition(random, 16);
  EXPECT_EQ(composed.model.step_time(condition), composed.exact.step_time(condition));
  condition.clock_permille = 975;
  const size_t before = composed.exact.distinct_conditions();
  const double composed_time = composed.model.step_time(condition).seconds();
  EXPECT_LE(composed.exact.distinct_conditions() - before, 2U);  // that clock, and nothing slow
  EXPECT_NEAR(composed_time / composed.exact.step_time(condition).seconds(), 1, 0.003);
}

// GPUs that are slow alone and at once: as many steps as there are kinds of places, whatever meets.
TEST(ComposedStepTime, slow_gpus_that_meet_need_no_steps_of_their_own) {
  const Scenario scenario = load_scenario("llama3-405b-16384");
  const Composed composed(scenario);
  // Of stage 3 in two ranks of one host, and of stage 4 on others.
  const std::vector<SlowPart> slow = {{.gpu = 24, .compute_permille = 800},
                                      {.gpu = 26, .compute_permille = 700},
                                      {.gpu = 128 + 24, .compute_permille = 800},
                                      {.gpu = 256 + 32, .compute_permille = 800}};
  for (const SlowPart& part : {slow[1], slow[3]}) composed.model.step_time({.slow = {part}});
  const size_t alone = composed.exact.distinct_conditions();
  const double met = composed.model.step_time({.slow = slow}).seconds();
  EXPECT_EQ(composed.exact.distinct_conditions(), alone);
  EXPECT_NEAR(met / composed.exact.step_time({.slow = slow}).seconds(), 1, 0.003);
}

// A dead ToR of a rail: a NIC in every stage of the replicas under it.
TEST(ComposedStepTime, slow_nics_of_one_replica_add_up) {
  const Scenario scenario =
      load_scenario("llama3-405b-16384", {"cluster.base=hpn7-15k", "cluster.gpus=16384"});
  const Composed composed(scenario);
  Condition condition;
  for (int64_t host = 0; host < 128; ++host)
    condition.slow.push_back({.gpu = 8 * host + 3, .nic_permille = 500});
  const double whole = composed.exact.step_time(condition).seconds();
  EXPECT_NEAR(composed.model.step_time(condition).seconds() / whole, 1, 0.005);
  EXPECT_GT(whole, composed.exact.step_time({}).seconds());
}

// Slow hosts, a slow NIC and the afternoon, where it matters: few steps for many conditions.
TEST(ComposedStepTime, needs_few_simulated_steps_for_many_speeds) {
  const Scenario scenario = load_scenario("llama3-405b-16384");
  const Composed composed(scenario);
  const auto at = [&](int64_t replica, int64_t stage, int32_t compute, int32_t nic) {
    return SlowPart{
        .gpu = 128 * replica + 8 * stage, .compute_permille = compute, .nic_permille = nic};
  };
  const Condition both{.clock_permille = 988,
                       .slow = {at(3, 4, 870, 1000), at(90, 4, 1000, 600), at(127, 15, 910, 1000)}};
  const double whole = composed.exact.step_time(both).seconds();
  EXPECT_NEAR(composed.model.step_time(both).seconds() / whole, 1, 0.003);
  const size_t before = composed.exact.distinct_conditions();
  double last = 0;
  for (int32_t speed = 990; speed >= 600; speed -= 10) {
    const double time = composed.model.step_time({.slow = {at(0, 4, speed, 1000)}}).seconds();
    EXPECT_GE(time, last) << speed;
    last = time;
  }
  EXPECT_LE(composed.exact.distinct_conditions() - before, 14U);
  const Condition slow{.slow = {at(0, 4, 640, 1000)}};
  EXPECT_NEAR(composed.model.step_time(slow).seconds() / composed.exact.step_time(slow).seconds(),
              1, 0.002);
}

}  // namespace
}  // namespace herdsim

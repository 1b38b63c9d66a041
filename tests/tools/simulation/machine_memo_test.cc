// What steps have in common changes none of them: each with a memo is the one without, whatever the
// memo knows already.
#include "tools/simulation/machine_memo.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/sim/executor/job_cases.h"
#include "tests/tools/simulation/result_text.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

// Another scenario that shares its machine, grid, pattern or nothing with the first.
Scenario neighbour_of(Scenario scenario, size_t kind) {
  switch (kind % 5) {
    case 0:
      scenario.training.recompute = Recompute::kFull;
      break;
    case 1:
      scenario.training.global_batch *= 2;
      break;
    case 2:
      scenario.seed += 1;
      break;
    case 3:
      scenario.cluster.degraded.push_back({.gpu = scenario.gpus - 1, .compute_factor = 0.7});
      break;
    default:
      scenario.plan.shard =
          scenario.plan.shard == Sharding::kNone ? Sharding::kZero1 : Sharding::kNone;
  }
  return scenario;
}

TEST(MachineMemo, changes_no_step) {
  MachineMemo machines;
  std::set<std::string> seen;
  for (size_t i = 0; i < job_cases().size(); ++i) {
    const Scenario first = job_cases()[i].scenario();
    for (const Scenario& scenario : {first, neighbour_of(first, i)}) {
      const std::string fresh = text_of(simulate_step(scenario, {}).result);
      EXPECT_EQ(text_of(simulate_step(scenario, {}, machines).result), fresh)
          << job_cases()[i].name;
      seen.insert(fresh);
    }
  }
  EXPECT_GT(seen.size(), job_cases().size());
}

TEST(MachineMemo, builds_a_machine_once_for_plans_that_lie_on_it_alike) {
  MachineMemo machines;
  const Scenario scenario = job_cases().front().scenario();
  Scenario other_work = scenario, other_seed = scenario, other_links = scenario;
  other_work.training.recompute = Recompute::kFull;
  other_seed.seed += 1;
  other_links.other_traffic.pod_uplinks = 0.5;
  const auto first = machines.of(scenario);
  EXPECT_EQ(machines.of(other_work), first);
  EXPECT_NE(machines.of(other_seed), first);
  EXPECT_EQ(machines.of(scenario), first);
  EXPECT_NE(machines.of(other_links), first);
  EXPECT_EQ(machines.of(scenario), first) << "asked for again before the other was";
}

}  // namespace
}  // namespace herdsim

#include "tools/simulation/step_time_model.h"

#include <algorithm>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

constexpr double kSharedByTwo = 0.5;

double nic_factor(const SlowPart& part) {
  return part.nic_permille == 0 ? kSharedByTwo : part.nic_permille / 1000.0;
}

// The job without some replicas, if its schedule can run their share of the work.
bool shrink(Scenario& scenario, int64_t replicas_away) {
  if (replicas_away == 0) return true;
  ParallelPlan& plan = scenario.plan;
  const int64_t micro_batches = scenario.training.global_batch / plan.micro_batch;
  // Replicas that share out experts or state go together.
  const int64_t block = plan.is_hybrid() ? plan.dp_shard : plan.expert_dp();
  plan.dp = std::max<int64_t>(1, (plan.dp - replicas_away) / block) * block;
  scenario.gpus = plan.ranks();
  const int64_t each = (micro_batches + plan.dp - 1) / plan.dp;
  scenario.training.global_batch = each * plan.dp * plan.micro_batch;
  Faults faults;
  find_schedule(scenario.training.schedule)
      ->validate(schedule_shape(plan, scenario.training), faults);
  return faults.empty();
}

}  // namespace

Duration SimulatedStepTime::step_time(const Condition& condition) const {
  Scenario scenario = scenario_;
  scenario.software.clock_factor *= condition.clock_permille / 1000.0;
  const int64_t replicas = scenario.plan.dp;
  double spread = 1;
  if (!shrink(scenario, std::min(condition.replicas_away, replicas - 1))) {
    spread = static_cast<double>(replicas) / static_cast<double>(scenario.plan.dp);
    scenario.training.global_batch = scenario_.training.global_batch / replicas * scenario.plan.dp;
  }
  for (const SlowPart& part : condition.slow) {
    if (part.gpu >= scenario.gpus) continue;
    scenario.cluster.degraded.push_back({.gpu = part.gpu,
                                         .compute_factor = part.compute_permille / 1000.0,
                                         .nic_factor = nic_factor(part)});
  }
  const double seconds = simulate_step(scenario, {}).result.step_time.seconds();
  return seconds_rounded_up(seconds * spread * condition.job_permille / 1000.0);
}

Condition SimulatedStepTime::canonical(const Condition& condition) const {
  const bool even =
      scenario_.training.expert_imbalance == 1 && scenario_.training.documents.mean_tokens == 0;
  const bool alike = even && scenario_.cluster.placement == PlacementKind::kTopologyOrder &&
                     scenario_.cluster.degraded.empty();
  Condition same = condition;
  if (alike && same.slow.size() == 1) {
    const RankCoordinates at =
        coordinates_of(RankId(static_cast<size_t>(same.slow.front().gpu)), scenario_.plan);
    same.slow.front().gpu =
        static_cast<int64_t>(rank_at({.pp = at.pp}, scenario_.plan).index());
  }
  return same;
}

}  // namespace herdsim

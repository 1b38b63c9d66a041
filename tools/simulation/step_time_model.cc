#include "tools/simulation/step_time_model.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

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

namespace {

// One replica's slow parts by their place in it: its ranks with the data-parallel coordinate at
// zero.
struct SlowReplica {
  std::map<int64_t, SlowPart> parts;  // `gpu` of the parts unused
};

// Nowhere faster: the other replica is never waited for.
bool covers(const SlowReplica& slow, const SlowReplica& other) {
  return std::all_of(other.parts.begin(), other.parts.end(), [&](const auto& entry) {
    const auto same = slow.parts.find(entry.first);
    return same != slow.parts.end() &&
           same->second.compute_permille <= entry.second.compute_permille &&
           same->second.nic_permille <= entry.second.nic_permille;
  });
}

bool operator<(const SlowReplica& a, const SlowReplica& b) { return a.parts < b.parts; }

// Which rank of its stage is slow does not matter while the others are not.
SlowReplica with_lone_part_first(const SlowReplica& replica, const ParallelPlan& plan) {
  if (replica.parts.size() != 1) return replica;
  const auto& [place, part] = *replica.parts.begin();
  const int64_t stage = coordinates_of(RankId(static_cast<size_t>(place)), plan).pp;
  SlowReplica first;
  first.parts[static_cast<int64_t>(rank_at({.pp = stage}, plan).index())] = part;
  return first;
}

}  // namespace

Condition SimulatedStepTime::canonical(const Condition& condition) const {
  const ClusterSpec& cluster = scenario_.cluster;
  const Training& training = scenario_.training;
  const bool alike = cluster.placement == PlacementKind::kTopologyOrder &&
                     cluster.unavailable_hosts.empty() && cluster.unavailable_fraction == 0 &&
                     cluster.degraded.empty() && training.expert_imbalance == 1 &&
                     training.documents.mean_tokens == 0 && scenario_.other_jobs.empty();
  if (!alike || condition.slow.empty()) return condition;
  const ParallelPlan& plan = scenario_.plan;
  std::map<int64_t, SlowReplica> by_replica;
  for (const SlowPart& part : condition.slow) {
    if (part.gpu >= scenario_.gpus) continue;
    RankCoordinates at = coordinates_of(RankId(static_cast<size_t>(part.gpu)), plan);
    const int64_t dp = std::exchange(at.dp, 0);
    SlowPart& place = by_replica[dp].parts[static_cast<int64_t>(rank_at(at, plan).index())];
    place.compute_permille = std::min(place.compute_permille, part.compute_permille);
    place.nic_permille = std::min(place.nic_permille, part.nic_permille);
  }
  std::vector<SlowReplica> kept;
  for (const auto& [dp, parts] : by_replica) {
    const SlowReplica replica = with_lone_part_first(parts, plan);
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const SlowReplica& k) { return covers(k, replica); })) {
      continue;
    }
    std::erase_if(kept, [&](const SlowReplica& k) { return covers(replica, k); });
    kept.push_back(replica);
  }
  std::sort(kept.begin(), kept.end());
  Condition same = condition;
  same.slow.clear();
  for (size_t dp = 0; dp < kept.size(); ++dp) {
    for (const auto& [place, part] : kept[dp].parts) {
      RankCoordinates at = coordinates_of(RankId(static_cast<size_t>(place)), plan);
      at.dp = static_cast<int64_t>(dp);
      same.slow.push_back({.gpu = static_cast<int64_t>(rank_at(at, plan).index()),
                           .compute_permille = part.compute_permille,
                           .nic_permille = part.nic_permille});
    }
  }
  std::sort(same.slow.begin(), same.slow.end());
  return same;
}

}  // namespace herdsim

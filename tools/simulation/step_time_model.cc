#include "tools/simulation/step_time_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"
#include "tools/simulation/storage_flows.h"
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

bool only_computes_slower(const Condition& condition) {
  return condition.clock_permille == 1000 && condition.replicas_away == 0 &&
         std::all_of(condition.slow.begin(), condition.slow.end(),
                     [](const SlowPart& part) { return part.nic_permille == 1000; });
}

}  // namespace

SimulatedStepTime::SimulatedStepTime(const Scenario& scenario) : scenario_(scenario) {}

const SlowedJob& SimulatedStepTime::slowed_job() const {
  std::call_once(slowed_made_,
                 [&] { slowed_ = std::make_unique<const SlowedJob>(without_storage_flows(scenario_)); });
  return *slowed_;
}

// Weeks have most of their steps between saves.
Duration SimulatedStepTime::step_time(const Condition& condition) const {
  if (!condition.slow.empty() && only_computes_slower(condition) &&
      SlowedJob::is_possible(without_storage_flows(scenario_))) {
    const double seconds = slowed_job().step_time(condition.slow).seconds();
    return seconds_rounded_up(seconds * condition.job_permille / 1000.0);
  }
  Scenario scenario = without_storage_flows(scenario_);
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
  const double seconds = simulate_step(scenario, {.result_alone = true}).result.step_time.seconds();
  return seconds_rounded_up(seconds * spread * condition.job_permille / 1000.0);
}

namespace {

// A slow part by its place in its stage.
struct PlacedPart {
  int32_t compute_permille = 1000, nic_permille = 1000;
  int64_t cp = 0, tp = 0;
  friend auto operator<=>(const PlacedPart&, const PlacedPart&) = default;

  // Ranks of a stage wait for the slowest of them in every layer, and its rings for the slowest
  // NIC, so it does not matter in which rank what is no slower sits.
  bool covers(const PlacedPart& other) const {
    return compute_permille <= other.compute_permille && nic_speed() <= other.nic_speed();
  }

 private:
  double nic_speed() const { return nic_factor({.nic_permille = nic_permille}); }
};

// Of one stage and replica. Of equals the first.
void keep_what_is_waited_for(std::vector<PlacedPart>& parts) {
  std::vector<PlacedPart> kept;
  for (const PlacedPart& part : parts) {
    const auto hides = [&](const PlacedPart& k) { return k.covers(part); };
    if (std::any_of(kept.begin(), kept.end(), hides)) continue;
    std::erase_if(kept, [&](const PlacedPart& k) { return part.covers(k); });
    kept.push_back(part);
  }
  parts = std::move(kept);
}

// One replica's slow parts, by stage, the slowest first.
using SlowReplica = std::map<int64_t, std::vector<PlacedPart>>;

// Nowhere faster: the other replica is never waited for.
bool covers(const SlowReplica& slow, const SlowReplica& other) {
  return std::all_of(other.begin(), other.end(), [&](const auto& entry) {
    const auto same = slow.find(entry.first);
    return same != slow.end() &&
           std::all_of(entry.second.begin(), entry.second.end(), [&](const PlacedPart& part) {
             return std::any_of(same->second.begin(), same->second.end(),
                                [&](const PlacedPart& p) { return p.covers(part); });
           });
  });
}

// By speeds alone. Two replicas that differ in nothing else cover each other.
bool is_before(const SlowReplica& a, const SlowReplica& b) {
  const auto speeds = [](const SlowReplica& replica) {
    std::vector<std::array<int64_t, 3>> all;
    for (const auto& [stage, parts] : replica) {
      for (const PlacedPart& part : parts)
        all.push_back({stage, part.compute_permille, part.nic_permille});
    }
    return all;
  };
  return speeds(a) < speeds(b);
}

std::map<int64_t, SlowReplica> slow_replicas(const Condition& condition, const ParallelPlan& plan) {
  std::map<int64_t, SlowReplica> by_replica;
  for (const SlowPart& part : condition.slow) {
    if (part.gpu >= plan.ranks()) continue;
    const RankCoordinates at = coordinates_of(RankId(static_cast<size_t>(part.gpu)), plan);
    by_replica[at.dp][at.pp].push_back({.compute_permille = part.compute_permille,
                                        .nic_permille = part.nic_permille,
                                        .cp = at.cp,
                                        .tp = at.tp});
  }
  for (auto& [dp, replica] : by_replica) {
    for (auto& [stage, parts] : replica) {
      std::sort(parts.begin(), parts.end());
      keep_what_is_waited_for(parts);
    }
  }
  return by_replica;
}

// The first name that is free, in the order of the questions.
class NewNames {
 public:
  int64_t of(int64_t old) {
    return names_.try_emplace(old, static_cast<int64_t>(names_.size())).first->second;
  }

 private:
  std::map<int64_t, int64_t> names_;
};

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
  std::vector<SlowReplica> kept;
  for (const auto& [dp, replica] : slow_replicas(condition, plan)) {
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const SlowReplica& k) { return covers(k, replica); })) {
      continue;
    }
    std::erase_if(kept, [&](const SlowReplica& k) { return covers(replica, k); });
    kept.push_back(replica);
  }
  std::sort(kept.begin(), kept.end(), is_before);
  Condition same = condition;
  same.slow.clear();
  // Ranks of a stage may swap places, but all its replicas alike: whether a slow GPU shares a ring
  // with another replica's slow NIC is kept.
  std::map<int64_t, std::pair<NewNames, NewNames>> names;  // by stage: cp and tp
  for (size_t dp = 0; dp < kept.size(); ++dp) {
    for (const auto& [stage, parts] : kept[dp]) {
      auto& [cp, tp] = names[stage];
      for (const PlacedPart& part : parts) {
        const RankCoordinates at{.tp = tp.of(part.tp),
                                 .cp = cp.of(part.cp),
                                 .pp = stage,
                                 .dp = static_cast<int64_t>(dp)};
        same.slow.push_back({.gpu = static_cast<int64_t>(rank_at(at, plan).index()),
                             .compute_permille = part.compute_permille,
                             .nic_permille = part.nic_permille});
      }
    }
  }
  std::sort(same.slow.begin(), same.slow.end());
  return same;
}

}  // namespace herdsim

#include "tools/simulation/job_on_machine.h"

#include <algorithm>

#include "sim/opgraph/collective_rules.h"
#include "tools/simulation/network_tuning.h"
#include "tools/simulation/storage_flows.h"
#include "topologies/routing.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

TypedVector<RankId, double> compute_factors(const Scenario& scenario) {
  TypedVector<RankId, double> factors(static_cast<size_t>(scenario.gpus), 1.0);
  for (const Degradation& part : scenario.cluster.degraded) {
    if (part.gpu < 0) continue;
    factors[RankId(static_cast<size_t>(part.gpu))] *= part.compute_factor;
  }
  return factors;
}

WorkloadSpec workload_of(const Scenario& s) { return {s.model, s.plan, s.training, s.software}; }

OpGraph graph_of(const Scenario& s, const ScheduleRow& schedule,
                 const std::vector<StageLayout>& layouts) {
  OpGraph graph = lower_step(workload_of(s), schedule, layouts);
  apply_rules(s.collectives, graph);
  return graph;
}

// One placement and one list of degraded parts for all jobs: ranks of each are counted on from
// those before it.
LinkConditions conditions_of(const Scenario& scenario, const MachineState& state) {
  ClusterSpec cluster = scenario.cluster;
  TypedVector<RankId, GpuId> placement = state.placements.front();
  for (size_t j = 0; j < scenario.other_jobs.size(); ++j) {
    const auto before = static_cast<int64_t>(placement.size());
    for (Degradation part : scenario.other_jobs[j].scenario.cluster.degraded) {
      if (part.gpu >= 0) part.gpu += before;
      cluster.degraded.push_back(part);
    }
    for (const GpuId gpu : state.placements[j + 1]) placement.push_back(gpu);
  }
  return link_conditions(state.fabric, cluster, placement);
}

double taken_of(LinkKind kind, const OtherTraffic& traffic) {
  return kind == LinkKind::kTorToPod    ? traffic.tor_uplinks
         : kind == LinkKind::kPodToCore ? traffic.pod_uplinks
                                        : 0;
}

// Constant traffic of others leaves that much less; a link that could never be full can be now.
void leave_other_traffic(const Fabric& fabric, const OtherTraffic& traffic, LinkConditions& links) {
  if (traffic.tor_uplinks == 0 && traffic.pod_uplinks == 0) return;
  const auto left = [&](LinkId link, Bandwidth capacity) {
    return capacity * Ratio(1 - taken_of(fabric.links()[link].kind, traffic));
  };
  for (size_t l = 0; l < links.capacity.size(); ++l) {
    const LinkId link(l);
    if (taken_of(fabric.links()[link].kind, traffic) == 0) continue;
    links.capacity[link] = left(link, links.capacity[link]);
    links.impaired.push_back(link);
  }
  std::sort(links.impaired.begin(), links.impaired.end());
  links.impaired.erase(std::unique(links.impaired.begin(), links.impaired.end()),
                       links.impaired.end());
  for (CapacityChange& change : links.changes) change.capacity = left(change.link, change.capacity);
}

}  // namespace

TypedVector<RankId, GpuId> placement_of(const Scenario& scenario) {
  const ParallelPlan& p = scenario.plan;
  return place_ranks(
      scenario.cluster,
      {.ranks = scenario.gpus, .seed = scenario.seed, .ranks_per_replica = p.tp * p.cp * p.pp});
}

MachineState machine_of(const Scenario& scenario) {
  MachineState state{find_topology(scenario.cluster.topology)->build(scenario.cluster), {}, {}};
  state.placements.push_back(placement_of(scenario));
  for (const OtherJob& other : scenario.other_jobs)
    state.placements.push_back(placement_of(other.scenario));
  state.links = conditions_of(scenario, state);
  leave_other_traffic(state.fabric, scenario.other_traffic, state.links);
  if (has_storage_flows(scenario)) {
    set_disk_rates(scenario, state);
    state.storage_shares_hosts = state.fabric.storage()->over_training;
  }
  state.fabric.let_bind(state.links.impaired);
  return state;
}

JobOnMachine::JobOnMachine(const Scenario& of, const MachineState& state, size_t index)
    : scenario(of),
      placement(state.placements[index]),
      schedule(*find_schedule(of.training.schedule)),
      layouts(layout_stages(of.model, of.plan, schedule)),
      graph(graph_of(of, schedule, layouts)),
      costs(cost_graph(graph, of.profile, of.software)),
      factors(compute_factors(of)),
      tuning(network_tuning(of, state.fabric, placement)),
      sms{of.profile.sms, of.profile.sms_lost_per_transfer_sm},
      machine{.fabric = state.fabric,
              .placement = placement,
              .capacity = state.links.capacity,
              .compute_factor = factors,
              .tuning = tuning,
              .spread = lane_spread(of.cluster),
              .seed = of.seed,
              .line_share = of.cluster.nic_efficiency,
              .changes = state.links.changes,
              .is_shared = state.placements.size() > 1 || state.storage_shares_hosts,
              .shares_hosts = state.storage_shares_hosts} {}

}  // namespace herdsim

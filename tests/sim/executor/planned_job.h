// A scenario taken apart into what the executor runs, so that tests can compare one job folded and
// unfolded.
//
//   PlannedJob job(load_scenario("llama3-405b-16384", small_job({.tp = 2, .pp = 4, .dp = 2})));
//   const FoldedJob folded = job.fold_with(job.classify());
//   const StepOutcome outcome = job.run(folded);
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/nccl_tuning.h"
#include "sim/costing/cost_pass.h"
#include "sim/executor/step_executor.h"
#include "sim/symmetry/folded_job.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"
#include "topologies/link_capacity.h"
#include "topologies/routing.h"
#include "workloads/lowering.h"

namespace herdsim {

struct SmallPlan {
  int64_t tp = 1, cp = 1, pp = 1, dp = 1;
  int64_t virtual_stages = 1;
  int64_t micro_batches = 4;
  std::string schedule = "1f1b";
};

// Overrides that make a catalogue scenario a small job of one layer a model chunk.
inline std::vector<std::string> small_job(const SmallPlan& plan,
                                          const std::vector<std::string>& more = {}) {
  const auto set = [](const char* field, int64_t value) {
    return std::string(field) + "=" + std::to_string(value);
  };
  const ScheduleRow* row = find_schedule(plan.schedule);
  const ScheduleShape shape{.stages = plan.pp,
                            .micro_batches = plan.micro_batches,
                            .virtual_stages = plan.virtual_stages};
  std::vector<std::string> sets = {
      set("gpus", plan.tp * plan.cp * plan.pp * plan.dp),
      set("parallel.tp", plan.tp),
      set("parallel.cp", plan.cp),
      set("parallel.pp", plan.pp),
      set("parallel.dp", plan.dp),
      set("parallel.virtual_stages", plan.virtual_stages),
      set("training.global_batch", plan.dp * plan.micro_batches),
      set("model.layers", model_chunks(*row, shape)),
      "training.schedule=" + plan.schedule,
      "recovery.spares=0",
  };
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

class PlannedJob {
 public:
  explicit PlannedJob(Scenario s)
      : scenario(std::move(s)),
        row(*find_schedule(scenario.training.schedule)),
        workload{scenario.model, scenario.plan, scenario.training, scenario.software},
        graph(lower_step(workload, row, layout_stages(scenario.model, scenario.plan, row))),
        costs(cost_graph(graph, scenario.profile, scenario.software)),
        placement(placement_of(scenario)),
        fabric(find_topology(scenario.cluster.topology)->build(scenario.cluster)),
        links(bind_impaired(fabric, link_conditions(fabric, scenario.cluster, placement))),
        factors(factors_of(scenario)),
        tuning(h100_tuning(scenario.cluster.nccl_version)),
        machine{.fabric = fabric,
                .placement = placement,
                .capacity = links.capacity,
                .compute_factor = factors,
                .tuning = tuning,
                .sms_per_gpu = scenario.profile.sms,
                .spread = lane_spread(scenario.cluster),
                .seed = scenario.seed,
                .line_share = scenario.cluster.nic_efficiency,
                .changes = links.changes},
        map(map_job(graph, machine)) {}
  PlannedJob(const PlannedJob&) = delete;  // members refer to each other
  PlannedJob& operator=(const PlannedJob&) = delete;

  JobClasses classes() const { return classify(graph, machine, map); }
  JobClasses singles() const { return no_classes(graph, machine, map); }
  FoldedJob fold_with(const JobClasses& of) const { return fold(graph, machine, map, of); }
  StepOutcome run(const FoldedJob& job, const std::vector<RankClassId>& traced = {}) const {
    return run(job, ExecutionChoice{.traced = traced});
  }
  StepOutcome run(const FoldedJob& job, const ExecutionChoice& choice) const {
    return execute_step(graph, costs, map, job, tuning, scenario.profile.sms, choice);
  }

  const Scenario scenario;
  const ScheduleRow& row;
  const WorkloadSpec workload;
  OpGraph graph;
  CostedGraph costs;
  const TypedVector<RankId, GpuId> placement;
  Fabric fabric;
  const LinkConditions links;
  const TypedVector<RankId, double> factors;
  const NcclTuning tuning;
  const Machine machine;
  const JobMap map;

 private:
  static LinkConditions bind_impaired(Fabric& fabric, LinkConditions links) {
    fabric.let_bind(links.impaired);
    return links;
  }
  static TypedVector<RankId, double> factors_of(const Scenario& scenario) {
    TypedVector<RankId, double> factors(static_cast<size_t>(scenario.gpus), 1.0);
    for (const Degradation& part : scenario.cluster.degraded) {
      if (part.gpu < 0) continue;
      factors[RankId(static_cast<size_t>(part.gpu))] *= part.compute_factor;
    }
    return factors;
  }
};

}  // namespace herdsim

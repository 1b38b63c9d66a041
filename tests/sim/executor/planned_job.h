// A scenario taken apart into what the executor runs, so that tests can compare one job folded and
// unfolded.
//
//   PlannedJob job(load_scenario("llama3-405b-16384", small_job({.tp = 2, .pp = 4, .dp = 2})));
//   const FoldedJob folded = job.fold_with(job.classify());
//   const StepOutcome outcome = job.run(folded);
#pragma once

#include <string>
#include <vector>

#include "sim/costing/cost_pass.h"
#include "sim/executor/step_executor.h"
#include "sim/symmetry/folded_job.h"
#include "sim/symmetry/job_map.h"
#include "sim/symmetry/rank_classes.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/network_tuning.h"
#include "tools/simulation/simulate_step.h"
#include "workloads/lowering.h"

namespace herdsim {

struct SmallPlan {
  int64_t tp = 1, cp = 1, pp = 1, dp = 1;
  int64_t virtual_stages = 1;
  int64_t micro_batches = 4;
  std::string schedule = "1f1b";
};

// The scenario that small_job() overrides.
constexpr const char* kSmallJobBase = "llama3-405b-16384";

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

// The override that puts such a job beside another on its machine.
inline std::string other_job(const SmallPlan& plan, const std::vector<std::string>& more,
                             double begins_s = 0) {
  std::string text = "other_jobs={scenario: \"llama3-405b-16384\" begins_s: " + std::to_string(begins_s);
  for (const std::string& set : small_job(plan, more)) text += " set: \"" + set + "\"";
  return text + "}";
}

class PlannedJob {
 public:
  explicit PlannedJob(Scenario s)
      : scenario(std::move(s)), state(machine_of(scenario)), on(scenario, state, 0) {}
  PlannedJob(const PlannedJob&) = delete;  // members refer to each other
  PlannedJob& operator=(const PlannedJob&) = delete;

  JobClasses classes() const { return classify(graph, machine, map); }
  JobClasses singles() const { return no_classes(graph, machine, map); }
  FoldedJob fold_with(const JobClasses& of) const { return fold(graph, machine, map, of); }
  StepOutcome run(const FoldedJob& job, const std::vector<RankClassId>& traced = {}) const {
    return run(job, ExecutionChoice{.traced = traced});
  }
  StepOutcome run(const FoldedJob& job, const ExecutionChoice& choice) const {
    return execute_step(graph, costs, job, tuning, on.sms, choice);
  }

  const Scenario scenario;
  const MachineState state;
  JobOnMachine on;
  OpGraph& graph = on.graph;
  CostedGraph& costs = on.costs;
  const NcclTuning& tuning = on.tuning;
  const Machine& machine = on.machine;
  const JobMap map = map_job(graph, machine);
  const TypedVector<RankId, double>& factors = on.factors;
  const Fabric& fabric = state.fabric;
  const LinkConditions& links = state.links;
  const TypedVector<RankId, GpuId>& placement = on.placement;
};

}  // namespace herdsim

#include "tools/simulation/steady_step.h"

#include <algorithm>

#include "sim/executor/steady_state.h"
#include "sim/executor/step_executor.h"
#include "tools/simulation/shorter_steps.h"
#include "tools/simulation/step_answer.h"
#include "tools/simulation/step_length.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

Scenario with_micro_batches(Scenario scenario, int64_t micro_batches) {
  scenario.training.global_batch = micro_batches * scenario.plan.dp * scenario.plan.micro_batch;
  return scenario;
}

// Whether each micro-batch is worth as much as any other.
bool has_even_micro_batches(const OpGraph& graph) {
  return std::all_of(graph.uneven.begin(), graph.uneven.end(),
                     [](const UnevenLoad& load) { return load.columns == 1; });
}

// A shorter step on the machine, with records.
struct ShorterStep {
  ShorterStep(const Scenario& whole, int64_t micro_batches, MachineMemo::Known& machine)
      : scenario(with_micro_batches(whole, micro_batches)),
        job(scenario, machine.state, 0),
        folded(machine.jobs.of(job.graph, job.machine)) {}

  void run() {
    check_work_length(job);
    outcome = execute_step(job.graph, job.costs, folded, job.tuning, job.sms,
                           {.traced = {}, .keep_records = true});
  }
  RecordedStep recorded() const { return {job.graph, folded, outcome}; }

  const Scenario scenario;
  JobOnMachine job;
  const FoldedJob folded;
  StepOutcome outcome;
};

}  // namespace

std::optional<StepSimulation> simulate_steady(MachineMemo::Known& machine, const Scenario& scenario,
                                              const StepOptions& options) {
  // Parts may break inside the step, and replicas run away from one that is slower.
  if (!scenario.cluster.degraded.empty()) return std::nullopt;
  const ScheduleShape shape = schedule_shape(scenario.plan, scenario.training);
  for (const ShorterSteps& shorter :
       shorter_steps(*find_schedule(scenario.training.schedule), shape)) {
    ShorterStep fewer(scenario, shorter.micro_batches, machine);
    if (!has_even_micro_batches(fewer.job.graph)) return std::nullopt;
    fewer.run();
    ShorterStep more(scenario, shorter.micro_batches + shorter.period, machine);
    more.run();
    const Duration pace = more.outcome.makespan - fewer.outcome.makespan;
    const double whole =
        fewer.outcome.makespan.seconds() + pace.seconds() * static_cast<double>(shorter.periods);
    if (whole > longest_step(scenario).seconds())
      return std::nullopt;  // as long as it takes to say so
    if (!is_steady(fewer.recorded(), more.recorded())) continue;
    const StepOutcome outcome = extended(fewer.outcome, more.outcome, shorter.periods);
    return answer(scenario, fewer.job, machine.state, fewer.folded, outcome, options);
  }
  return std::nullopt;
}

}  // namespace herdsim

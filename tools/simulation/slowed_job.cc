#include "tools/simulation/slowed_job.h"

#include "sim/base/check.h"
#include "sim/symmetry/folded_job.h"
#include "sim/symmetry/rank_classes.h"
#include "tools/simulation/step_answer.h"
#include "tools/simulation/step_length.h"

namespace herdsim {

bool SlowedJob::is_possible(const Scenario& scenario) {
  return scenario.other_jobs.empty() && !scenario.other_traffic.has_storage();
}

SlowedJob::SlowedJob(const Scenario& scenario)
    : scenario_(scenario),
      state_(machine_of(scenario_)),
      job_(scenario_, state_, 0),
      map_(map_job(job_.graph, job_.machine)) {
  check_work_length(job_);
}

Duration SlowedJob::step_time(std::span<const SlowPart> slow) const {
  TypedVector<RankId, double> factors = job_.factors;
  for (const SlowPart& part : slow)
    factors[RankId(static_cast<size_t>(part.gpu))] *= part.compute_permille / 1000.0;
  Machine machine{.fabric = job_.machine.fabric,
                  .placement = job_.machine.placement,
                  .capacity = job_.machine.capacity,
                  .compute_factor = factors,
                  .tuning = job_.machine.tuning,
                  .spread = job_.machine.spread,
                  .seed = job_.machine.seed,
                  .line_share = job_.machine.line_share,
                  .changes = job_.machine.changes,
                  .is_shared = job_.machine.is_shared,
                  .shares_hosts = job_.machine.shares_hosts};
  const FoldedJob folded = fold(job_.graph, machine, map_, classify(job_.graph, machine, map_));
  const StepOutcome outcome = execute_step(job_.graph, job_.costs, folded, job_.tuning, job_.sms);
  HERDSIM_CHECK(outcome.deadlock.empty()) << "a slower GPU halts the job";
  check_step_length(scenario_, outcome.makespan);
  return outcome.makespan + loader_wait(scenario_, outcome.makespan);
}

}  // namespace herdsim

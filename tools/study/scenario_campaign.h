// Weeks of training of a scenario: its machine, failures, checkpoints and recovery as a campaign
// over its simulated step.
//
//   const StepResult step = simulate_step(scenario, {}).result;
//   const RunResult run = run_scenario(scenario, step, {.days = 54}, {.threads = 2});
#pragma once

#include <vector>

#include "sim/job/campaign.h"
#include "sim/metrics/run_result.h"
#include "sim/metrics/step_result.h"
#include "tools/scenario/scenario.h"
#include "traces/db/run_database.h"

namespace herdsim {

// Days, tokens or both, whichever ends first; neither: as the scenario says.
struct RunHorizon {
  double days = 0;
  double tokens = 0;
  int64_t replicas = 0;  // 0: as the scenario says
  // Simulates every condition as a whole, instead of composing those with several slow parts
  // (tools/simulation/composed_step_time.h). Slow where many parts come and go.
  bool every_condition = false;

  bool is_asked() const { return days > 0 || tokens > 0; }
};

// What a campaign needs of a scenario whose undisturbed step takes `step`.
CampaignRequest campaign_request(const Scenario& scenario, const RunHorizon& horizon,
                                 Duration step);

// `step` is that of the scenario. The wall time is left to the caller.
// Throws: SpecError for a scenario that cannot run for weeks, such as one without a horizon.
RunResult run_scenario(const Scenario& scenario, const StepResult& step, const RunHorizon& horizon,
                       const CampaignOptions& options);
// The same, and what each failure class and slow part costs (`contributions`).
RunResult run_and_rank_scenario(const Scenario& scenario, const StepResult& step,
                                const RunHorizon& horizon, const CampaignOptions& options);

// The figures of a run for a database, under names that begin with "run.".
std::vector<Metric> run_metrics(const RunResult& run);

}  // namespace herdsim

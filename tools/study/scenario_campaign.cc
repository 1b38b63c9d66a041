#include "tools/study/scenario_campaign.h"

#include "sim/job/campaign_spec.h"
#include "tools/simulation/step_time_model.h"

namespace herdsim {
namespace {

// Bytes a parameter: fp32 master weight and both moments, and the bf16 weight once a replica.
constexpr int64_t kCheckpointBytesAParameter = 14;

}  // namespace

CampaignRequest campaign_request(const Scenario& scenario, const RunHorizon& horizon,
                                 Duration step) {
  CampaignRequest request;
  request.scenario = scenario.name;
  request.machine = {.gpus = scenario.gpus,
                     .gpus_per_host = scenario.cluster.gpus_per_host,
                     .gpus_per_tor = scenario.cluster.gpus_per_tor,
                     .gpus_per_pod = scenario.cluster.gpus_per_pod};
  if (!scenario.reliability.base.empty()) request.reliability_base = scenario.reliability.base;
  request.rate_scale = scenario.reliability.rate_scale;
  if (!scenario.checkpoint.policy.empty()) {
    request.checkpoint_policy = scenario.checkpoint.policy;
    request.checkpoint_interval_s = scenario.checkpoint.interval.seconds();
  }
  request.checkpoint_bytes = Bytes(scenario.model.parameters() * kCheckpointBytesAParameter);
  if (!scenario.recovery.policy.empty()) {
    request.recovery_policy = scenario.recovery.policy;
    request.spares = scenario.recovery.spares;
  }
  request.nominal_step = step;
  request.data_parallel = scenario.plan.dp;
  request.tokens_per_step = scenario.training.tokens();
  request.days = horizon.is_asked() ? horizon.days : scenario.run.days;
  request.tokens = horizon.is_asked() ? horizon.tokens : scenario.run.tokens;
  request.replicas = horizon.replicas;
  request.seed = scenario.seed;
  return request;
}

RunResult run_scenario(const Scenario& scenario, const StepResult& step, const RunHorizon& horizon,
                       const CampaignOptions& options) {
  const CampaignSpec spec = resolve(campaign_request(scenario, horizon, step.step_time));
  const SimulatedStepTime step_time(scenario);
  RunResult result = run_campaign(spec, step_time, options);
  result.nominal_step = step.step_time;
  result.tokens_per_step = step.tokens_per_step;
  result.model_flops_per_step = step.model_flops_causal;
  result.peak = step.peak;
  result.busy_watts = scenario.profile.board_watts;
  return result;
}

}  // namespace herdsim

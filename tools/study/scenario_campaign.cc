#include "tools/study/scenario_campaign.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/job/campaign_spec.h"
#include "tools/simulation/step_time_model.h"
#include "tools/study/confidence.h"

namespace herdsim {
namespace {

// An other job as the store sees it: it saves at its own interval and reads its own data.
StoreTenant tenant_of(const Scenario& job) {
  const CheckpointRequest& c = job.checkpoint;
  StoreTenant tenant = store_tenant({.total = c.bytes,
                                     .gpus = job.gpus,
                                     .gpus_per_host = job.cluster.gpus_per_host,
                                     .data_parallel = job.plan.dp},
                                    c.storage, seconds_rounded_up(c.interval_s));
  const CheckpointPolicy& policy = *find_checkpoint_policy(c.policy);
  const bool saves = std::any_of(policy.tiers.begin(), policy.tiers.end(), [](const TierRow& tier) {
    return tier.medium == Medium::kRemote;
  });
  if (!saves) tenant.bytes = Bytes(0);
  return tenant;
}

}  // namespace

CampaignRequest campaign_request(const Scenario& scenario, const RunHorizon& horizon,
                                 Duration step) {
  CampaignRequest request;
  request.scenario = scenario.name;
  request.machine = {.gpus = scenario.gpus,
                     .gpus_per_host = scenario.cluster.gpus_per_host,
                     .gpus_per_tor = scenario.cluster.gpus_per_tor,
                     .gpus_per_pod = scenario.cluster.gpus_per_pod};
  request.reliability = scenario.reliability;
  request.checkpoint = scenario.checkpoint;
  for (const OtherJob& other : scenario.other_jobs) {
    request.checkpoint.others.push_back(tenant_of(other.scenario));
  }
  request.recovery = scenario.recovery;
  request.nominal_step = step;
  request.data_parallel = scenario.plan.dp;
  request.tokens_per_step = scenario.training.tokens();
  request.run = scenario.run;
  if (horizon.is_asked()) {
    request.run.days = horizon.days;
    request.run.tokens = horizon.tokens;
  }
  if (horizon.replicas > 0) request.run.replicas = horizon.replicas;
  request.seed = scenario.seed;
  return request;
}

namespace {

// What the campaign does not know of the job.
void fill_in(const Scenario& scenario, const StepResult& step, RunResult& result) {
  result.nominal_step = step.step_time;
  result.tokens_per_step = step.tokens_per_step;
  result.model_flops_per_step = step.model_flops_causal;
  result.peak = step.peak;
  result.busy_watts = scenario.profile.board_watts;
}

}  // namespace

RunResult run_scenario(const Scenario& scenario, const StepResult& step, const RunHorizon& horizon,
                       const CampaignOptions& options) {
  const CampaignSpec spec = resolve(campaign_request(scenario, horizon, step.step_time));
  RunResult result = run_campaign(spec, SimulatedStepTime(scenario), options);
  fill_in(scenario, step, result);
  return result;
}

RunResult run_and_rank_scenario(const Scenario& scenario, const StepResult& step,
                                const RunHorizon& horizon, const CampaignOptions& options) {
  const CampaignSpec spec = resolve(campaign_request(scenario, horizon, step.step_time));
  const SimulatedStepTime simulated(scenario);
  // Both parts meet the same conditions of the machine.
  const MemoisedStepTime step_time(simulated);
  const int64_t replicas = spec.request.run.replicas;
  const int64_t rows = static_cast<int64_t>(spec.classes.size() + spec.slow.size());
  const int64_t all = replicas + rows * ranked_replicas(spec);
  CampaignOptions first = options, second = options;
  if (options.progress) {
    first.progress = [&](int64_t done, int64_t) { options.progress(done, all); };
    second.progress = [&](int64_t done, int64_t) { options.progress(replicas + done, all); };
  }
  RunResult result = run_campaign(spec, step_time, first);
  rank_contributions(spec, step_time, second, result);
  fill_in(scenario, step, result);
  return result;
}

std::vector<Metric> run_metrics(const RunResult& run) {
  std::vector<double> useful;
  for (const ReplicaResult& replica : run.replicas) {
    useful.push_back(replica.effective_training_time());
  }
  std::vector<Metric> metrics = {
      {"run.effective_training_time", run.effective_training_time(), ""},
      {"run.effective_training_time_half_width", mean_interval(useful).half_width, ""},
      {"run.effective_training_time_p05", run.effective_training_time_quantile(0.05), ""},
      {"run.effective_training_time_p95", run.effective_training_time_quantile(0.95), ""},
      {"run.gpu_energy_mwh", run.gpu_energy_megawatt_hours(), "MWh"},
      {"run.gpu_hours", run.gpu_hours(), "h"},
      {"run.horizon_s", run.mean_horizon_seconds(), "s"},
      {"run.mean_time_between_interruptions_s", run.mean_time_between_interruptions_seconds(), "s"},
      {"run.days_per_trillion_tokens", run.days_to_tokens(1e12), "d"},
      {"run.kept_step_share", run.kept_step_share(), ""},
      {"run.mfu", run.mfu(), ""},
      {"run.planned_interruptions", run.planned(), ""},
      {"run.replicas", static_cast<double>(run.replicas.size()), ""},
      {"run.tokens", run.tokens(), ""},
      {"run.unexpected_interruptions", run.unexpected(), ""}};
  const auto account = run.time_account_seconds();
  for (size_t i = 0; i < kRunTerms; ++i) {
    metrics.push_back({fmt::format("run.time_account.{}", kRunTermNames[i]), account[i], "s"});
  }
  for (size_t i = 0; i < run.class_names.size(); ++i) {
    metrics.push_back(
        {fmt::format("run.interruptions.{}", run.class_names[i]), run.interruptions(i), ""});
  }
  for (const Contribution& part : run.contributions) {
    metrics.push_back({fmt::format("run.gain_if_halved.{}", part.name), part.gain, ""});
  }
  return metrics;
}

}  // namespace herdsim

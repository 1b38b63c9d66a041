#include "tools/study/scenario_campaign.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/job/campaign_spec.h"
#include "tools/simulation/composed_step_time.h"
#include "tools/simulation/step_time_model.h"
#include "tools/study/confidence.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

// The parts that fail together are those of the fabric.
FailureDomains failure_domains(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  FailureDomains machine{.gpus = scenario.gpus,
                         .gpus_per_host = cluster.gpus_per_host,
                         .gpus_per_tor = cluster.gpus_per_tor,
                         .gpus_per_pod = cluster.gpus_per_pod};
  const Topology& topology = *find_topology(cluster.topology);
  const TopologyFacts facts = topology.facts(cluster);
  machine.rails = topology.has_rails ? rails_of(cluster) : 1;
  machine.planes = facts.planes;
  // A torus has no ToRs: what fails together is what the cluster says.
  if (facts.tors > 0)
    machine.gpus_per_tor = (facts.gpus * facts.planes + facts.tors - 1) / facts.tors;
  machine.gpus_per_pod = facts.gpus_per_pod;
  return machine;
}

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
  request.machine = failure_domains(scenario);
  request.board_watts = scenario.profile.board_watts;
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

// The step time of every condition a campaign meets.
class StepTimes {
 public:
  StepTimes(const Scenario& scenario, bool every_condition)
      : simulated_(scenario),
        memory_(simulated_),
        composed_(memory_, scenario.plan, scenario.cluster.gpus_per_host),
        every_condition_(every_condition) {}
  const StepTimeModel& model() const {
    return every_condition_ ? static_cast<const StepTimeModel&>(memory_) : composed_;
  }
  int64_t steps_simulated() const { return static_cast<int64_t>(memory_.distinct_conditions()); }

 private:
  const SimulatedStepTime simulated_;
  const MemoisedStepTime memory_;
  const ComposedStepTime composed_;
  const bool every_condition_;
};

// What the campaign does not know of the job.
void fill_in(const Scenario& scenario, const StepResult& step, RunResult& result) {
  result.nominal_step = step.between_saves();
  result.tokens_per_step = step.tokens_per_step;
  result.model_flops_per_step = step.model_flops_causal;
  result.peak = step.peak;
  result.busy_watts = scenario.profile.board_watts;
  const double cap = scenario.reliability.power_cap_w;
  if (cap > 0) result.busy_watts = std::min(result.busy_watts, cap);
}

}  // namespace

namespace {

CampaignSpec campaign_of(const Scenario& scenario, const StepResult& step,
                         const RunHorizon& horizon) {
  CampaignRequest request = campaign_request(scenario, horizon, step.between_saves());
  if (const StageMemory* fullest = step.peak_stage()) {
    const Bytes capacity = step.memory_capacity;
    request.hbm_free = fullest->peak < capacity ? capacity - fullest->peak : Bytes(0);
  }
  return resolve(request);
}

}  // namespace

RunResult run_scenario(const Scenario& scenario, const StepResult& step, const RunHorizon& horizon,
                       const CampaignOptions& options) {
  const CampaignSpec spec = campaign_of(scenario, step, horizon);
  const StepTimes step_times(scenario, horizon.every_condition);
  RunResult result = run_campaign(spec, step_times.model(), options);
  result.distinct_conditions = step_times.steps_simulated();
  fill_in(scenario, step, result);
  return result;
}

RunResult run_and_rank_scenario(const Scenario& scenario, const StepResult& step,
                                const RunHorizon& horizon, const CampaignOptions& options) {
  const CampaignSpec spec = campaign_of(scenario, step, horizon);
  // Both parts meet the same conditions of the machine.
  const StepTimes step_times(scenario, horizon.every_condition);
  const int64_t replicas = spec.request.run.replicas;
  const int64_t all = replicas + ranked_campaigns(spec) * ranked_replicas(spec);
  CampaignOptions first = options, second = options;
  if (options.progress) {
    first.progress = [&](int64_t done, int64_t) { options.progress(done, all); };
    second.progress = [&](int64_t done, int64_t) { options.progress(replicas + done, all); };
  }
  RunResult result = run_campaign(spec, step_times.model(), first);
  rank_contributions(spec, step_times.model(), second, result);
  result.distinct_conditions = step_times.steps_simulated();
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
  if (run.without_stragglers)
    metrics.push_back({"run.gain_without_stragglers", run.without_stragglers->gain, ""});
  for (const Contribution& part : run.contributions) {
    metrics.push_back({fmt::format("run.gain_if_halved.{}", part.name), part.gain, ""});
  }
  return metrics;
}

}  // namespace herdsim

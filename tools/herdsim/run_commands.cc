#include "tools/herdsim/run_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <chrono>
#include <thread>

#include "sim/job/campaign.h"
#include "sim/job/campaign_spec.h"
#include "tools/herdsim/load_options.h"
#include "tools/report/run_report.h"
#include "tools/simulation/simulate_step.h"
#include "tools/simulation/step_time_model.h"

namespace herdsim {
namespace {

// The shard of every rank: fp32 master weights and both moments, and bf16 weights once a replica.
Bytes checkpoint_bytes(const Scenario& scenario) { return Bytes(scenario.model.parameters() * 14); }

CampaignRequest request_of(const Scenario& scenario, const Options& options, Duration step) {
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
  request.checkpoint_bytes = checkpoint_bytes(scenario);
  if (!scenario.recovery.policy.empty()) {
    request.recovery_policy = scenario.recovery.policy;
    request.spares = scenario.recovery.spares;
  }
  request.nominal_step = step;
  request.data_parallel = scenario.plan.dp;
  request.tokens_per_step = scenario.training.tokens();
  // The command line replaces what the scenario asks for.
  const bool asked = options.days > 0 || options.tokens > 0;
  request.days = asked ? options.days : scenario.run.days;
  request.tokens = asked ? options.tokens : scenario.run.tokens;
  request.replicas = options.replicas;
  request.seed = scenario.seed;
  return request;
}

std::vector<Figure> figures_of(const RunResult& r) {
  return {{"effective_training_time", r.effective_training_time()},
          {"effective_training_time_p05", r.effective_training_time_quantile(0.05)},
          {"mfu", r.mfu()},
          {"tokens", r.tokens()},
          {"unexpected_interruptions", r.unexpected()},
          {"gpu_hours", r.gpu_hours()}};
}

}  // namespace

int run_run_command(const Options& options, Streams streams) {
  const auto begin = std::chrono::steady_clock::now();
  const Scenario scenario = scenario_of(options, options.names.front());
  const StepResult step = simulate_step(scenario, {}).result;
  const CampaignSpec spec = resolve(request_of(scenario, options, step.step_time));

  CampaignOptions campaign;
  campaign.threads = options.threads > 0 ? options.threads
                                         : static_cast<int>(std::thread::hardware_concurrency());
  const SimulatedStepTime step_time(scenario);
  RunResult result = run_campaign(spec, step_time, campaign);
  result.nominal_step = step.step_time;
  result.tokens_per_step = step.tokens_per_step;
  result.model_flops_per_step = step.model_flops_causal;
  result.peak = step.peak;
  result.busy_watts = scenario.profile.board_watts;
  result.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", run_table(result));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", run_json(result));
      break;
    case OutputFormat::kCsv:
      print_warnings(result.warnings, options, streams);
      fmt::print(streams.out, "{}", runs_csv(std::span(&result, 1)));
      break;
  }
  return check_requirements(options.require, figures_of(result), streams);
}

}  // namespace herdsim

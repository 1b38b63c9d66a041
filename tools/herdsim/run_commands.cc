#include "tools/herdsim/run_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <chrono>
#include <thread>

#include "tools/herdsim/load_options.h"
#include "tools/report/run_report.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/scenario_campaign.h"

namespace herdsim {
namespace {

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

  // The command line replaces what the scenario asks for.
  const RunHorizon horizon{
      .days = options.days, .tokens = options.tokens, .replicas = options.replicas};
  CampaignOptions campaign;
  campaign.threads = options.threads > 0 ? options.threads
                                         : static_cast<int>(std::thread::hardware_concurrency());
  RunResult result = run_scenario(scenario, step, horizon, campaign);
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

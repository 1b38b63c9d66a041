#include "tools/herdsim/run_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <chrono>
#include <thread>

#include "tools/herdsim/load_options.h"
#include "tools/herdsim/progress_line.h"
#include "tools/herdsim/record_run.h"
#include "tools/report/run_report.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/campaign_timeline.h"
#include "tools/study/failure_rates.h"
#include "tools/study/scenario_campaign.h"
#include "traces/timeline_writer.h"

namespace herdsim {
namespace {

constexpr FigureRow<RunResult> kRunFigures[] = {
    {"effective_training_time", [](const RunResult& r) { return r.effective_training_time(); }},
    {"effective_training_time_p05",
     [](const RunResult& r) { return r.effective_training_time_quantile(0.05); }},
    {"mfu", [](const RunResult& r) { return r.mfu(); }},
    {"tokens", [](const RunResult& r) { return r.tokens(); }},
    {"unexpected_interruptions", [](const RunResult& r) { return r.unexpected(); }},
    {"days", [](const RunResult& r) { return r.mean_horizon_seconds() / 86'400; }},
    {"gpu_hours", [](const RunResult& r) { return r.gpu_hours(); }}};

void print_run(const RunResult& result, const Options& options, Streams streams) {
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", run_table(result));
      return;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", run_json(result));
      return;
    case OutputFormat::kCsv:
      print_warnings(result.warnings, options, streams);
      fmt::print(streams.out, "{}", runs_csv(std::span(&result, 1)));
      return;
  }
}

void write_campaign_trace(const CampaignTrace& trace, const Scenario& scenario,
                          const Options& options, Streams streams) {
  if (options.trace.empty()) return;
  const PerfettoCounts counts = write_timeline_file(
      campaign_timeline(trace, fmt::format("{}: {} GPUs", scenario.name, scenario.gpus),
                        scenario.cluster.gpus_per_host),
      options.trace);
  if (!options.quiet) {
    const std::string thinning = trace.thinning();
    fmt::print(streams.err, "{}: the first replica, {} slices, {}{}\n", options.trace, counts.slices,
               to_text(Bytes(counts.file_bytes)), thinning.empty() ? "" : "; " + thinning);
  }
}

}  // namespace

int run_run_command(const Options& options, Streams streams) {
  const auto begin = std::chrono::steady_clock::now();
  const std::span<const FigureRow<RunResult>> figures(kRunFigures);
  const std::vector<Requirement> requirements = requirements_of(options, figures);
  const Scenario scenario = scenario_of(options, options.names.front());
  // The command line replaces what the scenario asks for.
  const RunHorizon horizon{.days = options.days,
                           .tokens = options.tokens,
                           .replicas = options.replicas,
                           .every_condition = options.no_fold};
  // Before anything is simulated.
  resolve(campaign_request(scenario, horizon, seconds(1)));
  const StepResult step = simulate_step(scenario, {.result_alone = true}).result;

  CampaignTrace trace;
  RunResult result;
  {
    ProgressLine progress(options, streams);
    CampaignOptions campaign;
    campaign.threads = options.threads > 0
                           ? options.threads
                           : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    campaign.progress = [&](int64_t done, int64_t of) { progress.show(done, of, "replicas"); };
    if (!options.trace.empty() || !options.db.empty()) campaign.trace = &trace;
    result = run_and_rank_scenario(scenario, step, horizon, campaign);
  }
  result.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  write_campaign_trace(trace, scenario, options, streams);
  if (!options.db.empty()) record_run(scenario, step, result, trace, options);
  print_run(result, options, streams);
  return check_requirements(requirements, figures, result, streams);
}

int run_rates_command(const Options& options, Streams streams) {
  const Scenario scenario = scenario_of(options, options.names.front());
  const std::vector<int64_t> gpus =
      options.gpu_counts.empty() ? std::vector{scenario.gpus} : options.gpu_counts;
  const Duration step = options.step_seconds > 0
                            ? seconds_rounded_up(options.step_seconds)
                            : simulate_step(scenario, {.result_alone = true}).result.between_saves();
  const RateReport report = failure_rates(scenario, gpus, step);
  switch (options.format) {
    case OutputFormat::kTable:
      print_warnings(report.warnings, options, streams);
      fmt::print(streams.out, "{}", rates_table(report));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", rates_json(report));
      break;
    case OutputFormat::kCsv:
      print_warnings(report.warnings, options, streams);
      fmt::print(streams.out, "{}", rates_csv(report));
      break;
  }
  return kExitDone;
}

}  // namespace herdsim

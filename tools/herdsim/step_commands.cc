// step, compare, explain, spec: what a scenario says and what one step of it takes.
#include "tools/herdsim/step_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/record_run.h"
#include "tools/herdsim/step_trace_file.h"
#include "tools/report/run_report.h"
#include "tools/report/step_comparison.h"
#include "tools/report/step_efficiency.h"
#include "tools/report/step_report.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/explanation.h"
#include "tools/simulation/memory_remedy.h"
#include "tools/study/run_comparison.h"
#include "tools/study/scenario_campaign.h"

namespace herdsim {
namespace {

std::optional<PublishedFigures> published_of(const Scenario& scenario) {
  if (!scenario.published) return std::nullopt;
  PublishedFigures figures{.source = scenario.published->source,
                           .model_tflops_per_gpu = std::nullopt,
                           .mfu = std::nullopt};
  if (scenario.published->model_tflops_per_gpu > 0) {
    figures.model_tflops_per_gpu = scenario.published->model_tflops_per_gpu;
  }
  if (scenario.published->mfu > 0) figures.mfu = scenario.published->mfu;
  return figures;
}

constexpr FigureRow<StepResult> kStepFigures[] = {
    {"step_time_s", [](const StepResult& r) { return r.step_time.seconds(); }},
    {"mfu", [](const StepResult& r) { return r.mfu_causal(); }},
    {"mfu_full_attention", [](const StepResult& r) { return r.mfu_full(); }},
    {"model_tflops_per_gpu",
     [](const StepResult& r) { return r.flops_per_gpu_causal().teraflops(); }},
    {"tokens_per_second_per_gpu",
     [](const StepResult& r) { return r.tokens_per_second_per_gpu(); }},
    {"bubble_fraction", [](const StepResult& r) { return r.bubble_fraction(); }},
    {"peak_memory_bytes",
     [](const StepResult& r) { return static_cast<double>(r.peak_stage()->peak.count()); }}};

// A speed is no answer for a model whose weights, gradients and optimizer alone do not fit.
void refuse_state_beyond_memory(const Scenario& scenario, const StepResult& result,
                                const Options& options) {
  if (options.ignore_memory) return;
  for (const StageMemory& stage : result.memory) {
    const Bytes state = stage.weights + stage.gradients + stage.optimizer;
    if (state <= result.memory_capacity) continue;
    Fault fault;
    fault.file = result.scenario;
    fault.field = "parallel";
    fault.problem = fmt::format(
        "does not fit: {} of weights, gradients and optimizer state a GPU on stage {}, {} of HBM",
        to_text(state), stage.stage, to_text(result.memory_capacity));
    fault.allowed = memory_remedy(scenario) + "; or --ignore-memory";
    throw SpecError({fault});
  }
}

StepOptions step_options(const Options& options) { return {.fold = !options.no_fold}; }

// Throws where the step means nothing; warns where it does not fit.
void check_memory(const Scenario& scenario, StepResult& result, const Options& options) {
  refuse_state_beyond_memory(scenario, result, options);
  if (!result.fits()) result.warnings.push_back("memory: " + memory_remedy(scenario));
}

StepSimulation simulate(const Scenario& scenario, const Options& options, bool explain = false) {
  StepOptions step = step_options(options);
  step.critical_path = step.without = explain;
  StepSimulation simulation = simulate_step(scenario, step);
  check_memory(scenario, simulation.result, options);
  return simulation;
}

// With the spans of some ranks, for a trace or the database, which keeps the schedule as it ran.
StepSimulation simulate_with_spans(const Scenario& scenario, const Options& options,
                                   Streams streams) {
  const std::vector<RankId> wanted = ranks_of(options.trace_ranks, scenario);
  const Bytes budget = trace_budget(options);
  StepOptions step = step_options(options);
  step.critical_path = !options.trace.empty();
  TracedStep traced = simulate_traced(scenario, step, wanted, budget);
  check_memory(scenario, traced.simulation.result, options);
  if (!options.trace.empty()) {
    const std::string size =
        write_step_trace(scenario, step, traced, wanted, budget, options.trace);
    if (!options.quiet) {
      fmt::print(streams.err, "{}: {}; {}\n", options.trace, size, traced.note);
    }
  }
  return std::move(traced.simulation);
}

void print_steps(const std::vector<Scenario>& scenarios, const std::vector<StepResult>& results,
                 const Options& options, Streams streams) {
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", step_table(results.front(), published_of(scenarios.front())));
      return;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", step_json(results.front()));
      return;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", steps_csv(results));
      return;
  }
}

int compare_many(const Options& options, Streams streams, bool explain) {
  std::vector<StepResult> results;
  for (const Scenario& scenario : scenarios_of(options)) {
    results.push_back(simulate(scenario, options).result);
    // The table of a comparison has its own list.
    if (explain || options.format != OutputFormat::kTable) {
      print_warnings(results.back().warnings, options, streams);
    }
  }
  const StepResult& a = results.front();
  const StepResult& b = results.back();
  switch (options.format) {
    case OutputFormat::kTable:
      if (!explain) fmt::print(streams.out, "{}\n", comparison_table(results));
      if (results.size() == 2 && !explain) fmt::print(streams.out, "{}\n", difference_table(a, b));
      fmt::print(streams.out, "{}",
                 results.size() == 2 ? efficiency_table(a, b) : efficiency_matrix(results));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}",
                 explain               ? efficiency_json(a, b)
                 : results.size() == 2 ? difference_json(a, b)
                                       : steps_json(results));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", steps_csv(results));
      break;
  }
  return kExitDone;
}

// On the same seed, so that replica i of each meets the same failures.
int compare_runs_of(const Options& options, Streams streams) {
  const RunHorizon horizon{
      .days = options.days, .tokens = options.tokens, .replicas = options.replicas};
  std::vector<RunResult> runs;
  for (const Scenario& scenario : scenarios_of(options)) {
    const StepResult step = simulate(scenario, options).result;
    runs.push_back(run_scenario(scenario, step, horizon, {.threads = threads_of(options)}));
    print_warnings(runs.back().warnings, options, streams);
  }
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", runs_comparison_table(runs));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", runs_comparison_json(runs));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", runs_csv(runs));
      break;
  }
  return kExitDone;
}

}  // namespace

int run_step_command(const Options& options, Streams streams) {
  const std::span<const FigureRow<StepResult>> figures(kStepFigures);
  const std::vector<Requirement> requirements = requirements_of(options, figures);
  const Scenario scenario = scenario_of(options, options.names.front());
  const bool with_spans = !options.trace.empty() || !options.db.empty();
  const StepSimulation simulation =
      with_spans ? simulate_with_spans(scenario, options, streams) : simulate(scenario, options);
  if (!options.db.empty()) record_step(scenario, simulation, options);
  // The table has its own list of warnings; a program that reads JSON or CSV has them there or on
  // the error stream.
  if (options.format == OutputFormat::kCsv) {
    print_warnings(simulation.result.warnings, options, streams);
  }
  print_steps({scenario}, {simulation.result}, options, streams);
  return check_requirements(requirements, figures, simulation.result, streams);
}

int run_compare_command(const Options& options, Streams streams) {
  if (options.days > 0 || options.tokens > 0) return compare_runs_of(options, streams);
  if (options.replicas > 0) {
    reject("--replicas", "a step has no replicas: it is the same every time",
           "with --days or --tokens");
  }
  return compare_many(options, streams, false);
}

int run_explain_command(const Options& options, Streams streams) {
  if (options.names.size() == 2) return compare_many(options, streams, true);
  const Scenario scenario = scenario_of(options, options.names.front());
  const StepSimulation simulation = simulate(scenario, options, true);
  fmt::print(streams.out, "{}",
             options.format == OutputFormat::kJson ? explanation_json(scenario, simulation)
                                                   : explanation_table(scenario, simulation));
  return kExitDone;
}

int run_spec_command(const Options& options, Streams streams) {
  if (options.format != OutputFormat::kTable) {
    reject("--format", "a scenario is printed in its own language", "table");
  }
  const Scenario scenario = scenario_of(options, options.names.front());
  print_warnings(scenario.warnings, options, streams);
  fmt::print(streams.out, "{}", scenario.effective_text);
  return kExitDone;
}

}  // namespace herdsim

#include "tools/herdsim/study_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <thread>

#include "sim/base/error.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/progress_line.h"
#include "tools/herdsim/version.h"
#include "tools/scenario/load_scenario.h"
#include "tools/study/plan_report.h"
#include "tools/study/sweep.h"

namespace herdsim {
namespace {

int threads_of(const Options& options) {
  return options.threads > 0 ? options.threads
                             : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The command without how it was run: the rows do not depend on it.
std::string sweep_command_line(const Options& options) {
  std::string text = "herdsim sweep " + options.names.front();
  for (const std::string& set : options.sets) text += " --set " + set;
  if (options.seed) text += fmt::format(" --seed {}", *options.seed);
  for (const std::string& axis : options.axes) text += " --axis " + axis;
  if (options.days > 0) text += fmt::format(" --days {}", options.days);
  if (options.tokens > 0) text += fmt::format(" --tokens {}", options.tokens);
  if (options.replicas > 0) text += fmt::format(" --replicas {}", options.replicas);
  return text;
}

// One GPU and no parallelism: what is searched has no say, and everything else is checked.
std::string plan_scenario_text(const Options& options) {
  const auto or_default = [](const std::string& name, const char* fallback) {
    return name.empty() ? std::string(fallback) : name;
  };
  return fmt::format(
      "name: \"plan\"\nmodel {{ base: \"{}\" }}\ncluster {{ base: \"{}\" }}\n"
      "profile {{ base: \"{}\" }}\nsoftware {{ base: \"{}\" }}\ngpus: 1\n"
      "training {{ sequence_length: 8192 global_batch: 2048 schedule: \"1f1b\" }}\n"
      "reliability {{ base: \"llama3-54-days\" }}\n"
      "checkpoint {{ policy: \"async\" interval_s: 300 }}\n"
      "recovery {{ policy: \"restart-with-spares\" spares: 0 }}\n",
      options.model, options.cluster, or_default(options.profile, "h100-sxm5-80gb"),
      or_default(options.software, "megatron-te"));
}

// One host in a hundred stands by.
constexpr int64_t kHostsASpare = 100;

Scenario base_for(const Scenario& one_gpu, int64_t gpus) {
  Scenario base = one_gpu;
  if (gpus > base.cluster.gpus) {
    throw SpecError({{.field = "--gpus",
                      .problem = fmt::format("{} GPUs are more than the cluster has", gpus),
                      .allowed = fmt::format("1 to {}", base.cluster.gpus)}});
  }
  base.gpus = gpus;
  base.recovery.spares =
      std::max<int64_t>(base.recovery.spares, gpus / base.cluster.gpus_per_host / kHostsASpare);
  return base;
}

PlanAnswer answer_of(const Scenario& base, const PlanPins& pins, const Options& options) {
  PlanAnswer answer;
  PlanOptions search;
  search.keep = options.keep;
  search.threads = threads_of(options);
  answer.search = search_plans(base, pins, search);
  if (answer.search.best.empty()) {
    answer.missed.push_back("a plan that fits");
    return answer;
  }
  if (options.tokens <= 0) return answer;
  answer.cost = plan_cost(base, answer.search.best.front(), options.tokens,
                          options.price_usd_per_gpu_hour, search.threads);
  const PlanCost& cost = *answer.cost;
  if (options.deadline_days > 0 && cost.days > options.deadline_days) {
    answer.missed.push_back(
        fmt::format("{:.1f} days, {} were allowed", cost.days, options.deadline_days));
  }
  if (options.budget_usd > 0 && cost.dollars > options.budget_usd) {
    answer.missed.push_back(
        fmt::format("${:.0f}, {:.0f} were allowed", cost.dollars, options.budget_usd));
  }
  return answer;
}

void check_plan_options(const Options& options) {
  Faults faults;
  const auto needs = [&](double option, const char* name, bool given, const char* other) {
    if (option > 0 && !given) {
      faults.add({.field = name, .problem = fmt::format("needs {}", other), .allowed = other});
    }
  };
  needs(options.deadline_days, "--deadline-days", options.tokens > 0, "--tokens");
  needs(options.budget_usd, "--budget-usd", options.tokens > 0, "--tokens");
  needs(options.budget_usd, "--budget-usd", options.price_usd_per_gpu_hour > 0,
        "--price-usd-per-gpu-hour");
  faults.throw_if_any();
}

}  // namespace

int run_plan_command(const Options& options, Streams streams) {
  check_plan_options(options);
  std::vector<std::string> sets = options.sets;
  if (options.seed) sets.push_back(fmt::format("seed={}", *options.seed));
  const PlanPins pins = take_pins(sets);
  const Scenario one_gpu = load_scenario_text(plan_scenario_text(options), "plan", sets);
  print_warnings(one_gpu.warnings, options, streams);
  PlanReport report{.model = options.model,
                    .cluster = options.cluster,
                    .tokens = options.tokens,
                    .dollars_per_gpu_hour = options.price_usd_per_gpu_hour,
                    .answers = {}};
  for (const int64_t gpus : options.gpu_counts) {
    report.answers.push_back(answer_of(base_for(one_gpu, gpus), pins, options));
  }
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", plan_table(report));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", plan_json(report));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", plan_csv(report));
      break;
  }
  const bool met = std::any_of(report.answers.begin(), report.answers.end(),
                               [](const PlanAnswer& answer) { return answer.missed.empty(); });
  return met ? kExitDone : kExitOutOfBounds;
}

int run_sweep_command(const Options& options, Streams streams) {
  if (options.db.empty()) {
    throw SpecError({{.field = "--db",
                      .problem = "a sweep keeps its points in a database",
                      .allowed = "--db FILE, new or of the same sweep"}});
  }
  SweepRequest request;
  request.scenario = options.names.front();
  request.sets = options.sets;
  if (options.seed) request.sets.push_back(fmt::format("seed={}", *options.seed));
  request.axes = options.axes;
  request.horizon = {.days = options.days, .tokens = options.tokens, .replicas = options.replicas};
  request.database = options.db;
  request.threads = threads_of(options);
  request.command = sweep_command_line(options);
  request.version = std::string(kVersion);
  SweepResult result;
  {
    ProgressLine progress(options, streams);
    request.progress = [&](const SweepProgress& p) {
      progress.show(p.done, p.to_do, fmt::format("points, {} found", p.found));
    };
    result = run_sweep(request);
  }
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", sweep_table(result));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", sweep_json(result));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", sweep_csv(result));
      break;
  }
  return kExitDone;
}

}  // namespace herdsim

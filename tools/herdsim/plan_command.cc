// plan: ways to spread a model over GPUs, what training takes with the best, and the whiteboard.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/study_commands.h"
#include "tools/scenario/load_scenario.h"
#include "tools/study/budget_sheet.h"
#include "tools/study/plan_report.h"

namespace herdsim {
namespace {

// One host in a hundred stands by.
constexpr int64_t kHostsASpare = 100;
constexpr const char* kDefaultProfile = "h100-sxm5-80gb";

std::string or_default(const std::string& name, const char* fallback) {
  return name.empty() ? std::string(fallback) : name;
}

// One GPU and no parallelism: what is searched has no say, and everything else is checked.
std::string plan_scenario_text(const Options& options) {
  return fmt::format(
      "name: \"plan\"\nmodel {{ base: \"{}\" }}\ncluster {{ base: \"{}\" }}\n"
      "profile {{ base: \"{}\" }}\nsoftware {{ base: \"{}\" }}\ngpus: 1\n"
      "training {{ sequence_length: 8192 global_batch: 2048 schedule: \"1f1b\" }}\n"
      "reliability {{ base: \"llama3-54-days\" }}\n"
      "checkpoint {{ policy: \"async\" interval_s: 300 }}\n"
      "recovery {{ policy: \"restart-with-spares\" spares: 0 }}\n",
      options.model, options.cluster, or_default(options.profile, kDefaultProfile),
      or_default(options.software, "megatron-te"));
}

Prices prices_of(const Options& options) {
  return {.usd_per_gpu_hour = options.price_usd_per_gpu_hour,
          .capital_usd_per_gpu = options.capital_usd_per_gpu,
          .depreciation_years = options.depreciation_years,
          .usd_per_kwh = options.usd_per_kwh};
}

// All that is asked of one `plan`.
class Planner {
 public:
  Planner(const Options& options, Streams streams) : options_(options), sets_(options.sets) {
    if (options.seed) sets_.push_back(fmt::format("seed={}", *options.seed));
    pins_ = take_pins(sets_);
    one_gpu_ = load("");
    print_warnings(one_gpu_.warnings, options, streams);
    check_against_machine();
  }

  PlanReport report() {
    PlanReport report{.model = options_.model,
                      .cluster = options_.cluster,
                      .prices = prices_of(options_),
                      .weak_scaling = options_.weak_scaling,
                      .answers = {}};
    for (const int64_t gpus : options_.gpu_counts) {
      report.answers.push_back(answer(gpus));
      const PlanAnswer& latest = report.answers.back();
      if (!first_ && !latest.search.best.empty()) first_ = latest.search.best.front();
    }
    return report;
  }

 private:
  Scenario load(const std::string& set) const {
    std::vector<std::string> sets = sets_;
    if (!set.empty()) sets.push_back(set);
    return load_scenario_text(plan_scenario_text(options_), "plan", sets);
  }

  void check_against_machine() const {
    Faults faults;
    for (const int64_t gpus : options_.gpu_counts) {
      if (gpus > one_gpu_.cluster.gpus) {
        faults.add({.field = "--gpus",
                    .problem = fmt::format("{} GPUs are more than the cluster has", gpus),
                    .allowed = fmt::format("1 to {}", one_gpu_.cluster.gpus)});
      }
      const int64_t first = options_.gpu_counts.front();
      if (options_.weak_scaling && one_gpu_.training.global_batch * gpus % first != 0) {
        faults.add({.field = "--weak",
                    .problem = fmt::format("a batch of {} on {} GPUs is no whole number on {}",
                                           one_gpu_.training.global_batch, first, gpus),
                    .allowed = "GPU counts in the ratio of whole batches"});
      }
    }
    const double memory = static_cast<double>(one_gpu_.profile.hbm.count()) * 1e-9;
    if (options_.memory_gigabytes > memory) {
      faults.add(
          {.field = "--memory-gigabytes",
           .problem = fmt::format("{} GB are more than the GPU has", options_.memory_gigabytes),
           .allowed = fmt::format("0 to {:.1f}", memory)});
    }
    faults.throw_if_any();
  }

  Scenario base_for(Scenario base, int64_t gpus) const {
    base.gpus = gpus;
    base.recovery.spares =
        std::max<int64_t>(base.recovery.spares, gpus / base.cluster.gpus_per_host / kHostsASpare);
    if (options_.weak_scaling) {
      base.training.global_batch = base.training.global_batch * gpus / options_.gpu_counts.front();
    }
    if (options_.memory_gigabytes > 0) {
      base.profile.hbm = Bytes(static_cast<int64_t>(options_.memory_gigabytes * 1e9));
    }
    return base;
  }

  PlanAnswer answer(int64_t gpus) {
    const Scenario base = base_for(one_gpu_, gpus);
    PlanAnswer answer;
    answer.global_batch = base.training.global_batch;
    PlanOptions search;
    search.keep = options_.keep;
    search.threads = threads_of(options_);
    answer.search = search_plans(base, pins_, search);
    if (answer.search.best.empty()) {
      miss_plan(base, answer);
      return answer;
    }
    const RankedPlan& best = answer.search.best.front();
    if (options_.tokens > 0) add_cost(base, best, answer);
    if (options_.formulas) {
      answer.formulas = formula_sheet(base, best, answer.cost ? &*answer.cost : nullptr,
                                      first_ ? &*first_ : nullptr);
    }
    return answer;
  }

  void miss_plan(const Scenario& base, PlanAnswer& answer) const {
    answer.missed.push_back({"plan", 0, 0, "a plan that fits"});
    if (answer.search.candidates == 0) {
      answer.gpus_with_plans = gpus_with_plans_near(base, pins_);
    }
  }

  void add_cost(const Scenario& base, const RankedPlan& best, PlanAnswer& answer) const {
    CostQuestion question{.tokens = options_.tokens,
                          .prices = prices_of(options_),
                          .availability = options_.availability,
                          .variant = {},
                          .threads = threads_of(options_)};
    question.variant = [&](const std::string& set) {
      return scenario_of(base_for(load(set), base.gpus), best.candidate);
    };
    answer.cost = cost_of(scenario_of(base, best.candidate), best.step, question);
    const PlanCost& cost = *answer.cost;
    if (options_.deadline_days > 0 && cost.days > options_.deadline_days) {
      const auto enough = static_cast<int64_t>(
          static_cast<double>(base.gpus) * cost.days / options_.deadline_days + 1);
      answer.missed.push_back(
          {"deadline_days", cost.days, options_.deadline_days,
           fmt::format("{:.1f} days, {:.1f} ({:.0f} %) over the {} allowed; at this pace a GPU, {} "
                       "GPUs would do",
                       cost.days, cost.days - options_.deadline_days,
                       100 * (cost.days / options_.deadline_days - 1), options_.deadline_days,
                       count_text(enough))});
    }
    if (options_.budget_usd > 0 && cost.dollars > options_.budget_usd) {
      answer.missed.push_back(
          {"budget_usd", cost.dollars, options_.budget_usd,
           fmt::format("${:.0f}, {:.0f} ({:.0f} %) over the {:.0f} allowed", cost.dollars,
                       cost.dollars - options_.budget_usd,
                       100 * (cost.dollars / options_.budget_usd - 1), options_.budget_usd)});
    }
  }

  const Options& options_;
  std::vector<std::string> sets_;
  PlanPins pins_;
  Scenario one_gpu_;
  std::optional<RankedPlan> first_;  // of the first GPU count that has one
};

void check_plan_options(const Options& options) {
  Faults faults;
  const auto needs = [&](bool given, const char* name, bool has, const char* other) {
    if (given && !has) {
      faults.add({.field = name, .problem = fmt::format("needs {}", other), .allowed = other});
    }
  };
  const bool priced = prices_of(options).is_given();
  needs(true, "plan", !options.model.empty(), "--model M");
  needs(true, "plan", !options.cluster.empty(), "--cluster C");
  needs(true, "plan", !options.gpu_counts.empty(), "--gpus N");
  needs(options.deadline_days > 0, "--deadline-days", options.tokens > 0, "--tokens");
  needs(options.budget_usd > 0, "--budget-usd", options.tokens > 0, "--tokens");
  needs(options.budget_usd > 0, "--budget-usd", priced, "--price-usd-per-gpu-hour");
  needs(options.usd_per_kwh > 0, "--usd-per-kwh", options.capital_usd_per_gpu > 0,
        "--capital-usd-per-gpu");
  for (const auto& [name, value] :
       {std::pair("--flops", options.flops), std::pair("--mfu", options.mfu),
        std::pair("--tflops-per-gpu", options.tflops_per_gpu),
        std::pair("--tokens-per-second-per-gpu", options.tokens_per_second_per_gpu),
        std::pair("--peak-tflops", options.peak_tflops)}) {
    if (value <= 0) continue;
    faults.add({.field = name,
                .problem = "the simulation knows the work and the rate of a plan on a cluster",
                .allowed = "--formulas without --cluster"});
  }
  faults.throw_if_any();
}

// Of --set, what a budget can use.
DataType budget_precision(const Options& options) {
  DataType precision = DataType::kBf16;
  for (const std::string& set : options.sets) {
    if (set == "training.precision=FP8") {
      precision = DataType::kFp8;
    } else if (set != "training.precision=BF16") {
      throw SpecError({{.file = "--set " + set,
                        .problem = "changes nothing without --cluster",
                        .allowed = "training.precision=FP8 or BF16"}});
    }
  }
  return precision;
}

std::string budget_json(const std::vector<BudgetLine>& lines) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const BudgetLine& line : lines) {
    nlohmann::ordered_json j = {{"basis", line.basis},
                                {"asked", line.asked},
                                {"gpus", line.gpus},
                                {"days", line.days},
                                {"gpu_hours", line.gpu_hours}};
    if (line.tflops_per_gpu) j["tflops_per_gpu"] = *line.tflops_per_gpu;
    if (line.mfu) j["mfu"] = *line.mfu;
    if (line.dollars > 0) j["usd"] = line.dollars;
    j["notes"] = line.notes;
    out.push_back(std::move(j));
  }
  return nlohmann::ordered_json{{"budget", std::move(out)}}.dump(2) + '\n';
}

int run_budget(const Options& options, Streams streams) {
  const DeviceProfile profile = load_profile(or_default(options.profile, kDefaultProfile));
  BudgetQuestion question{.flops = options.flops,
                          .tokens = options.tokens,
                          .flops_per_token = 0,
                          .mfu = options.mfu,
                          .tflops_per_gpu = options.tflops_per_gpu,
                          .tokens_per_second_per_gpu = options.tokens_per_second_per_gpu,
                          .peak_tflops = options.peak_tflops,
                          .gpus = options.gpu_counts,
                          .days = options.deadline_days,
                          .prices = prices_of(options),
                          .precision = budget_precision(options)};
  if (!options.model.empty()) {
    question.flops_per_token = 6 * static_cast<double>(load_model(options.model).parameters());
  }
  const std::vector<BudgetLine> lines = budget_lines(question, profile);
  if (options.format == OutputFormat::kJson) {
    fmt::print(streams.out, "{}", budget_json(lines));
  } else {
    fmt::print(streams.out, "{}", budget_table(lines, question.prices.is_given()));
  }
  const bool late = std::any_of(lines.begin(), lines.end(), [&](const BudgetLine& line) {
    return options.deadline_days > 0 && line.days > options.deadline_days * (1 + 1e-9);
  });
  return late ? kExitOutOfBounds : kExitDone;
}

}  // namespace

int run_plan_command(const Options& options, Streams streams) {
  if (options.formulas && options.cluster.empty()) return run_budget(options, streams);
  check_plan_options(options);
  const PlanReport report = Planner(options, streams).report();
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

}  // namespace herdsim

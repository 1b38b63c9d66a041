// plan: ways to spread a model over GPUs, what training takes with the best, and the whiteboard.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/progress_line.h"
#include "tools/herdsim/study_commands.h"
#include "tools/scenario/load_scenario.h"
#include "tools/study/budget_sheet.h"
#include "tools/study/plan_study.h"

namespace herdsim {
namespace {

constexpr const char* kDefaultProfile = "h100-sxm5-80gb";
constexpr const char* kDefaultSoftware = "megatron-te";
// Whose links a whiteboard without a cluster counts on.
constexpr const char* kWhiteboardCluster = "dgx-superpod-16k";

std::string or_default(const std::string& name, const char* fallback) {
  return name.empty() ? std::string(fallback) : name;
}

Prices prices_of(const Options& options) {
  return {.usd_per_gpu_hour = options.price_usd_per_gpu_hour,
          .capital_usd_per_gpu = options.capital_usd_per_gpu,
          .depreciation_years = options.depreciation_years,
          .usd_per_kwh = options.usd_per_kwh};
}

PlanQuestion question_of(const Options& options) {
  PlanQuestion question{.model = options.model,
                        .cluster = or_default(options.cluster, kWhiteboardCluster),
                        .profile = or_default(options.profile, kDefaultProfile),
                        .software = or_default(options.software, kDefaultSoftware),
                        .sets = options.sets,
                        .gpus = options.gpu_counts,
                        .tokens = options.tokens,
                        .deadline_days = options.deadline_days,
                        .budget_usd = options.budget_usd,
                        .memory_gigabytes = options.memory_gigabytes,
                        .prices = prices_of(options),
                        .availability = options.availability,
                        .keep = options.keep,
                        .weak_scaling = options.weak_scaling,
                        .formulas = options.formulas,
                        .threads = threads_of(options)};
  if (options.seed) question.sets.push_back(fmt::format("seed={}", *options.seed));
  return question;
}

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
  needs(options.weak_scaling, "--weak", !options.gpu_counts.empty(), "--gpus N,N,...");
  needs(options.deadline_days > 0, "--deadline-days", options.tokens > 0, "--tokens");
  needs(options.budget_usd > 0, "--budget-usd", options.tokens > 0, "--tokens");
  needs(options.budget_usd > 0, "--budget-usd", priced, "--price-usd-per-gpu-hour");
  needs(options.usd_per_kwh > 0, "--usd-per-kwh", options.capital_usd_per_gpu > 0,
        "--capital-usd-per-gpu");
  for (const auto& [name, value] :
       {std::pair("--flops", options.flops), std::pair("--mfu", options.mfu),
        std::pair("--tflops-per-gpu", options.tflops_per_gpu),
        std::pair("--tokens-per-second-per-gpu", options.tokens_per_second_per_gpu),
        std::pair("--gpu-hours", options.gpu_hours),
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

std::string rate_json(const std::vector<RateLine>& lines) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const RateLine& line : lines) {
    nlohmann::ordered_json j = {
        {"peak", line.peak}, {"tflops_per_gpu", line.tflops_per_gpu}, {"mfu", line.mfu}};
    if (line.tokens_per_second_per_gpu > 0) {
      j["tokens_per_second_per_gpu"] = line.tokens_per_second_per_gpu;
      j["flops_counted"] = line.counted;
    }
    if (!line.note.empty()) j["note"] = line.note;
    out.push_back(std::move(j));
  }
  return nlohmann::ordered_json{{"rates", std::move(out)}}.dump(2) + '\n';
}

// The model on the whiteboard: one GPU count, the first.
struct Whiteboard {
  Scenario base;
  FormulaSheet sheet;
};
Whiteboard whiteboard_of(const Options& options) {
  PlanPins pins;
  Whiteboard board{.base = plan_base(question_of(options), pins), .sheet = {}};
  if (!options.gpu_counts.empty()) board.base.gpus = options.gpu_counts.front();
  if (options.peak_tflops > 0) {
    board.base.profile.peak[static_cast<size_t>(board.base.training.precision)] =
        teraflops(options.peak_tflops);
  }
  board.sheet = whiteboard_sheet(board.base, pins);
  return board;
}

int run_budget(const Options& options, Streams streams) {
  const DeviceProfile profile = load_profile(or_default(options.profile, kDefaultProfile));
  std::optional<Whiteboard> board;
  BudgetQuestion question{.flops = options.flops,
                          .tokens = options.tokens,
                          .flops_per_token = 0,
                          .mfu = options.mfu,
                          .tflops_per_gpu = options.tflops_per_gpu,
                          .tokens_per_second_per_gpu = options.tokens_per_second_per_gpu,
                          .peak_tflops = options.peak_tflops,
                          .gpus = options.gpu_counts,
                          .days = options.deadline_days,
                          .gpu_hours = options.gpu_hours,
                          .prices = prices_of(options)};
  if (options.model.empty()) {
    question.precision = budget_precision(options);
  } else {
    board = whiteboard_of(options);
    count_flops(board->base, question);
  }
  const bool is_json = options.format == OutputFormat::kJson;
  std::string text;
  bool late = false;
  if (question.is_of_rate_alone()) {
    const std::vector<RateLine> lines = rate_lines(question, profile);
    fmt::print(streams.out, "{}", is_json ? rate_json(lines) : rate_table(lines));
    return kExitDone;
  }
  if (!board || question.flops + question.tokens > 0) {
    const std::vector<BudgetLine> lines = budget_lines(question, profile);
    text = is_json ? budget_json(lines) : budget_table(lines, question.prices.is_given());
    late = std::any_of(lines.begin(), lines.end(), [&](const BudgetLine& line) {
      return options.deadline_days > 0 && line.days > options.deadline_days * (1 + 1e-9);
    });
  }
  if (board && is_json) {
    nlohmann::ordered_json whole =
        text.empty() ? nlohmann::ordered_json::object() : nlohmann::ordered_json::parse(text);
    whole["formulas"] = nlohmann::ordered_json::parse(formula_json(board->sheet));
    text = whole.dump(2) + '\n';
  } else if (board) {
    text += (text.empty() ? "" : "\n") + formula_table(board->sheet);
  }
  fmt::print(streams.out, "{}", text);
  return late ? kExitOutOfBounds : kExitDone;
}

}  // namespace

int run_plan_command(const Options& options, Streams streams) {
  if (options.formulas && options.cluster.empty()) return run_budget(options, streams);
  check_plan_options(options);
  PlanReport report;
  {
    ProgressLine progress(options, streams);
    PlanQuestion question = question_of(options);
    question.progress = [&](int64_t settled, int64_t of, int64_t gpus) {
      progress.show(settled, of, fmt::format("plans of {} GPUs", gpus));
    };
    report = plan_study(question);
  }
  print_warnings(report.warnings, options, streams);
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

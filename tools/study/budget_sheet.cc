#include "tools/study/budget_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/table.h"
#include "sim/base/text.h"
#include "tools/study/closed_forms.h"
#include "tools/study/formula_sheet.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

// The most that a published training run reached on a device, TFLOP/s a GPU of model FLOPs.
struct PublishedBest {
  std::string_view profile;
  DataType precision;
  double tflops;
  std::string_view run;
  double gpus_from = 0;  // of all runs, or of those so large
};
constexpr std::array<PublishedBest, 6> kPublishedBest = {{
    {"h100-sxm5-80gb", DataType::kBf16, 430,
     "Llama 3 405B on 8,192 GPUs (arXiv:2407.21783, table 4)", 8'192},
    {"h100-sxm5-80gb", DataType::kBf16, 549,
     "Nemotron4 15B on 16 GPUs, full attention (NVIDIA dgxc-benchmarking v25.04.01)"},
    {"h100-sxm5-80gb", DataType::kFp8, 844,
     "Llama 3.1 405B on 512 GPUs (MLPerf Training 5.0, NVIDIA)"},
    {"h200-sxm-141gb", DataType::kBf16, 508,
     "Llama 3.1 70B on 256 GPUs, full attention (Google Cloud gpu-recipes)"},
    {"h200-sxm-141gb", DataType::kFp8, 930,
     "Llama 3.1 405B on 512 GPUs (MLPerf Training 5.0, Nebius)"},
    {"a100-sxm4-80gb", DataType::kBf16, 200,
     "MPT 7B on 8 GPUs, full attention (MosaicML llm-foundry)"},
}};

struct PrecisionName {
  DataType type;
  std::string_view name;
};
constexpr std::array<PrecisionName, 4> kPrecisions = {{{DataType::kBf16, "bf16"},
                                                       {DataType::kFp8, "fp8"},
                                                       {DataType::kFp16, "fp16"},
                                                       {DataType::kFp32, "fp32"}}};

// A peak so far above the dense one is of another precision, or of sparse matrices.
constexpr double kNotDense = 1.5;

std::string_view precision_name(DataType type) {
  return std::find_if(kPrecisions.begin(), kPrecisions.end(),
                      [&](const PrecisionName& row) { return row.type == type; })
      ->name;
}

class Budget {
 public:
  Budget(const BudgetQuestion& q, const DeviceProfile& profile) : q_(q), profile_(profile) {
    check();
    peak_ = (q.peak_tflops > 0 ? q.peak_tflops : profile.peak_of(q.precision).teraflops()) * 1e12;
    check_rate();
  }

  std::vector<BudgetLine> lines() const {
    std::vector<BudgetLine> lines;
    if (q_.gpu_hours > 0) return {gpu_hours_line()};
    if (q_.gpus.empty()) {
      lines.push_back(gpus_line(q_.precision, peak_));
      if (q_.mfu > 0) add_other_precisions(lines);
      return lines;
    }
    for (const int64_t gpus : q_.gpus) {
      lines.push_back(has_rate() ? days_line(static_cast<double>(gpus))
                                 : rate_line(static_cast<double>(gpus)));
    }
    return lines;
  }

 private:
  bool has_rate() const {
    return q_.mfu > 0 || q_.tflops_per_gpu > 0 || q_.tokens_per_second_per_gpu > 0;
  }
  bool counts_tokens() const { return q_.tokens_per_second_per_gpu > 0; }
  // In FLOPs, or in tokens where the rate is.
  double work() const {
    if (counts_tokens()) return q_.tokens;
    return q_.flops > 0 ? q_.flops : q_.tokens * q_.flops_per_token;
  }
  double rate(double peak) const {
    if (counts_tokens()) return q_.tokens_per_second_per_gpu;
    return q_.mfu > 0 ? q_.mfu * peak : q_.tflops_per_gpu * 1e12;
  }

  void check() const {
    Faults faults;
    const auto add = [&](const char* field, const char* problem, const char* allowed) {
      faults.add({.field = field, .problem = problem, .allowed = allowed});
    };
    if (counts_tokens() && q_.tokens <= 0) {
      add("--tokens-per-second-per-gpu", "needs the number of tokens", "--tokens T");
    }
    if (!counts_tokens() && q_.flops <= 0 && (q_.tokens <= 0 || q_.flops_per_token <= 0)) {
      add("--flops", "the work is not given", "--flops F, or --tokens T with --model M");
    }
    if (q_.flops > 0 && q_.tokens > 0) {
      add("--flops", "and --tokens both give the work", "one of them");
    }
    if ((q_.mfu > 0) + (q_.tflops_per_gpu > 0) + counts_tokens() > 1) {
      add("--mfu", "the rate of a GPU is given twice",
          "one of --mfu, --tflops-per-gpu, --tokens-per-second-per-gpu");
    }
    if (q_.mfu > 1) add("--mfu", "is above 1: no GPU does more than its peak", "0 to 1");
    if (q_.gpu_hours > 0) {
      if (has_rate() || !q_.gpus.empty() || q_.days > 0) {
        add("--gpu-hours",
            "with the work they give the rate; GPUs, days and a rate are no part of it",
            "--gpu-hours H with --flops F, or with --tokens T and --model M");
      }
      faults.throw_if_any();
      return;
    }
    if (q_.gpus.empty() && (q_.days <= 0 || !has_rate())) {
      add("--gpus", "GPUs follow from days and a rate, of which one is missing",
          "--gpus N, or --deadline-days D with --mfu M");
    }
    if (!q_.gpus.empty() && q_.days <= 0 && !has_rate()) {
      add("--mfu", "days follow from a rate, which is missing",
          "--mfu M, --tflops-per-gpu R or --tokens-per-second-per-gpu R");
    }
    faults.throw_if_any();
  }

  void check_rate() const {
    if (q_.tflops_per_gpu * 1e12 <= peak_) return;
    throw SpecError(
        {{.field = "--tflops-per-gpu",
          .problem = fmt::format("{} is above the dense {} peak of {:.1f}; data sheets "
                                 "print twice that for sparse matrices",
                                 q_.tflops_per_gpu, precision_name(q_.precision), peak_ * 1e-12),
          .allowed = fmt::format("0 to {:.1f}, or --set training.precision=FP8", peak_ * 1e-12)}});
  }

  BudgetLine line(DataType type, double peak, double gpus, double days) const {
    BudgetLine line;
    line.basis = fmt::format("{} {} peak, {:.1f} TFLOP/s", precision_name(type),
                             q_.peak_tflops > 0 ? "given" : "dense", peak * 1e-12);
    add_notes_of_peak(line, type, peak);
    add_note_of_attention(line);
    line.gpus = gpus;
    line.days = days;
    line.gpu_hours = gpus * days * 24;
    const double megawatt_hours =
        line.gpu_hours * profile_.board_watts * 1e-6 * kFacilityPowerFactor;
    line.dollars = dollars_for(q_.prices, gpus, days, megawatt_hours);
    return line;
  }

  void add_notes_of_peak(BudgetLine& line, DataType type, double peak) const {
    const double dense = profile_.peak_of(type).per_second();
    if (dense <= 0 || peak < kNotDense * dense) return;
    line.notes.push_back(fmt::format(
        "the dense {} peak of {} is {:.1f} TFLOP/s: {:.0f} is {:.2g} times that, a figure of "
        "sparse "
        "matrices or of another precision",
        precision_name(type), profile_.name, dense * 1e-12, peak * 1e-12, peak / dense));
  }

  void add_note_of_attention(BudgetLine& line) const {
    constexpr double kWorthSaying = 0.1;
    if (q_.tokens <= 0 || q_.flops_per_token_causal <= 0) return;
    const double more = q_.flops_per_token_causal / q_.flops_per_token - 1;
    if (more < kWorthSaying) return;
    line.notes.push_back(
        fmt::format("6 a parameter and token leaves out attention, {:.0f} % more if causal and "
                    "{:.0f} % over the full square",
                    100 * more, 100 * (q_.flops_per_token_full / q_.flops_per_token - 1)));
  }

  BudgetLine gpu_hours_line() const {
    BudgetLine result = line(q_.precision, peak_, 1, q_.gpu_hours / 24);
    result.asked = "rate";
    set_rate(result, q_.precision, peak_, work() / (q_.gpu_hours * 3600));
    result.gpus = result.days = 0;
    return result;
  }

  void set_rate(BudgetLine& line, DataType type, double peak, double flops_per_second) const {
    line.tflops_per_gpu = flops_per_second * 1e-12;
    line.mfu = flops_per_second / peak;
    if (flops_per_second > peak) {
      line.notes.push_back("more than the peak: it cannot be done");
    }
    for (const PublishedBest& best : kPublishedBest) {
      if (best.profile != profile_.name || best.precision != type) continue;
      if (*line.tflops_per_gpu <= best.tflops || line.gpus < best.gpus_from) continue;
      const std::string size =
          best.gpus_from > 0
              ? fmt::format(" of {} GPUs or more", count_text(static_cast<int64_t>(best.gpus_from)))
              : std::string();
      line.notes.push_back(fmt::format(
          "no published {} run{} reaches this: the most is {:.0f} "
          "TFLOP/s, {:.1f} % of the peak, by {}",
          precision_name(type), size, best.tflops, 100 * best.tflops * 1e12 / peak, best.run));
      return;
    }
  }

  BudgetLine gpus_line(DataType type, double peak) const {
    const int64_t gpus = gpus_for_days(work(), q_.days, rate(peak));
    BudgetLine result = line(type, peak, static_cast<double>(gpus), q_.days);
    result.asked = "GPUs";
    if (!counts_tokens()) set_rate(result, type, peak, rate(peak));
    return result;
  }

  // An MFU is of a peak: the same share of the other peaks of the device.
  void add_other_precisions(std::vector<BudgetLine>& lines) const {
    for (const DataType type : {DataType::kBf16, DataType::kFp8}) {
      const double peak = profile_.peak_of(type).per_second();
      const bool is_there = std::abs(peak / peak_ - 1) < 0.02;
      if ((type == q_.precision && q_.peak_tflops <= 0) || is_there || peak <= 0) continue;
      lines.push_back(gpus_line(type, peak));
      lines.back().basis =
          fmt::format("{} dense peak, {:.1f} TFLOP/s", precision_name(type), peak * 1e-12);
    }
  }

  BudgetLine days_line(double gpus) const {
    const double days = training_days(work(), gpus, rate(peak_));
    BudgetLine result = line(q_.precision, peak_, gpus, days);
    result.asked = "days";
    if (!counts_tokens()) {
      set_rate(result, q_.precision, peak_, rate(peak_));
    } else if (q_.flops_per_token > 0) {
      set_rate(result, q_.precision, peak_, rate(peak_) * q_.flops_per_token);
    }
    if (q_.days > 0 && days > q_.days) {
      result.notes.push_back(
          fmt::format("{:.1f} days more than the {} allowed", days - q_.days, q_.days));
    }
    return result;
  }

  BudgetLine rate_line(double gpus) const {
    BudgetLine result = line(q_.precision, peak_, gpus, q_.days);
    result.asked = "rate";
    set_rate(result, q_.precision, peak_, rate_for_days(work(), gpus, q_.days));
    return result;
  }

  const BudgetQuestion& q_;
  const DeviceProfile& profile_;
  double peak_ = 0;
};

}  // namespace

void count_flops(const Scenario& scenario, BudgetQuestion& question) {
  const ModelFlops flops = model_flops(scenario.model, scenario.training);
  const auto tokens = static_cast<double>(scenario.training.tokens());
  question.precision = scenario.training.precision;
  question.flops_per_token = 6 * active_parameters(scenario.model);
  question.flops_per_token_causal = static_cast<double>(flops.causal.count()) / tokens;
  question.flops_per_token_full = static_cast<double>(flops.full.count()) / tokens;
}

std::vector<BudgetLine> budget_lines(const BudgetQuestion& question, const DeviceProfile& profile) {
  return Budget(question, profile).lines();
}

std::vector<RateLine> rate_lines(const BudgetQuestion& q, const DeviceProfile& profile) {
  if (q.mfu > 1) {
    throw SpecError({{.field = "--mfu",
                      .problem = "is above 1: no GPU does more than its peak",
                      .allowed = "0 to 1"}});
  }
  struct Counting {
    const char* name;
    double flops_per_token;
  };
  std::vector<Counting> countings = {{"", 0}};
  if (q.flops_per_token > 0) {
    countings = {{"6 a parameter and token", q.flops_per_token},
                 {"with causal attention", q.flops_per_token_causal},
                 {"with attention over the full square", q.flops_per_token_full}};
  }
  struct Peak {
    DataType type;
    std::string_view kind;
    double per_second;
  };
  std::vector<Peak> peaks;
  if (q.peak_tflops > 0) peaks.push_back({q.precision, "given", q.peak_tflops * 1e12});
  for (const DataType type : {DataType::kBf16, DataType::kFp8}) {
    const double peak = profile.peak_of(type).per_second();
    if (peak > 0) peaks.push_back({type, "dense", peak});
  }
  std::vector<RateLine> lines;
  for (const Counting& counting : countings) {
    for (const Peak& peak : peaks) {
      double rate = q.mfu > 0 ? q.mfu * peak.per_second : q.tflops_per_gpu * 1e12;
      if (q.tokens_per_second_per_gpu > 0) {
        rate = q.tokens_per_second_per_gpu * counting.flops_per_token;
      }
      RateLine line{.counted = counting.name,
                    .peak = fmt::format("{} {}, {:.1f} TFLOP/s", precision_name(peak.type),
                                        peak.kind, peak.per_second * 1e-12),
                    .tflops_per_gpu = rate * 1e-12,
                    .mfu = rate / peak.per_second};
      if (counting.flops_per_token > 0) {
        line.tokens_per_second_per_gpu = rate / counting.flops_per_token;
      }
      if (line.mfu > 1) {
        line.note = "above the peak: not done in this precision, or counted too high";
      }
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string rate_table(const std::vector<RateLine>& lines) {
  const bool counts_tokens = lines.front().tokens_per_second_per_gpu > 0;
  std::vector<TextTable::Column> columns = {{"TFLOP/s", Align::kRight}, {"MFU %", Align::kRight}};
  if (counts_tokens) columns.push_back({"tokens/s", Align::kRight});
  columns.push_back({"of the peak"});
  if (counts_tokens) columns.push_back({"FLOPs counted", Align::kWrap});
  TextTable table(std::move(columns));
  std::string notes;
  for (const RateLine& line : lines) {
    std::vector<std::string> row = {fmt::format("{:.1f}", line.tflops_per_gpu),
                                    fmt::format("{:.1f}", 100 * line.mfu)};
    if (counts_tokens) row.push_back(fmt::format("{:.1f}", line.tokens_per_second_per_gpu));
    row.push_back(line.peak);
    if (counts_tokens) row.push_back(line.counted);
    table.add_row(std::move(row));
    if (line.note.empty()) continue;
    const std::string text = fmt::format("note, {}: {}\n", line.peak, line.note);
    if (notes.find(text) == std::string::npos) notes += text;
  }
  return table.text() + notes +
         "a GPU; data sheets print twice the dense peak, of sparse matrices, beside or instead\n";
}

std::string budget_table(const std::vector<BudgetLine>& lines, bool dollars) {
  std::vector<TextTable::Column> columns = {{"GPUs", Align::kRight},
                                            {"days", Align::kRight},
                                            {"TFLOP/s", Align::kRight},
                                            {"MFU %", Align::kRight},
                                            {"GPU-hours", Align::kRight}};
  if (dollars) columns.push_back({"dollars", Align::kRight});
  columns.push_back({"follows", Align::kLeft});
  columns.push_back({"rate of", Align::kWrap});
  TextTable table(std::move(columns));
  std::string notes;
  for (const BudgetLine& line : lines) {
    std::vector<std::string> row = {
        line.gpus > 0 ? count_text(static_cast<int64_t>(line.gpus)) : "-",
        line.gpus > 0 ? fmt::format("{:.1f}", line.days) : "-",
        line.tflops_per_gpu ? fmt::format("{:.1f}", *line.tflops_per_gpu) : "-",
        line.mfu ? fmt::format("{:.1f}", 100 * *line.mfu) : "-",
        count_text(static_cast<int64_t>(line.gpu_hours + 0.5))};
    if (dollars) row.push_back(count_text(static_cast<int64_t>(line.dollars + 0.5)));
    row.push_back(line.asked);
    row.push_back(line.basis);
    table.add_row(std::move(row));
    for (const std::string& note : line.notes) {
      const std::string text = fmt::format("note, {}: {}\n", line.basis, note);
      if (notes.find(text) == std::string::npos) notes += text;
    }
  }
  return table.text() + notes;
}

}  // namespace herdsim

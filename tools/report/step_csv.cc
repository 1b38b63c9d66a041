#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sim/base/text.h"
#include "tools/report/step_report.h"

namespace herdsim {
namespace {

using Column = std::pair<std::string, std::string>;  // name, value

// The shortest digits that read back as the same double.
std::string number(double value) { return fmt::format("{}", value); }
std::string number(int64_t value) { return fmt::format("{}", value); }

// Names and values from one place, so that they cannot come apart.
std::vector<Column> columns_of(const StepResult& r) {
  const StageMemory* peak = r.peak_stage();
  const bool has_peak_rate = r.peak.per_second() > 0;
  std::vector<Column> columns = {
      {"scenario", csv_field(r.scenario)},
      {"gpus", number(r.gpus)},
      {"step_time_s", number(r.step_time.seconds())},
      {"tokens_per_step", number(r.tokens_per_step)},
      {"tokens_per_second_per_gpu", number(r.tokens_per_second_per_gpu())},
      {"model_tflops_per_gpu", number(r.flops_per_gpu_causal().teraflops())},
      {"mfu", has_peak_rate ? number(r.mfu_causal()) : ""},
      {"mfu_full_attention", has_peak_rate ? number(r.mfu_full()) : ""},
      {"peak_tflops", number(r.peak.teraflops())},
      {"dtype", csv_field(r.dtype)}};
  const auto account = r.time_account_seconds();
  for (size_t i = 0; i < kTimeTerms; ++i) {
    columns.emplace_back(fmt::format("{}_s", kTimeTermNames[i]), number(account[i]));
  }
  const std::vector<Column> rest = {
      {"bubble_fraction", number(r.bubble_fraction())},
      {"peak_memory_bytes", peak != nullptr ? number(peak->peak.count()) : ""},
      {"peak_memory_stage", peak != nullptr ? number(peak->stage) : ""},
      {"peak_memory_moment", peak != nullptr ? csv_field(peak->moment) : ""},
      {"memory_capacity_bytes", number(r.memory_capacity.count())},
      {"fits", r.fits() ? "true" : "false"},
      {"simulated_ranks", number(r.simulated_ranks)},
      {"events", number(r.events)},
      {"wall_s", number(r.wall_seconds)},
      {"fingerprint", r.fingerprint()},
      {"warnings", csv_field(fmt::format("{}", fmt::join(r.all_warnings(), "; ")))}};
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

}  // namespace

std::string steps_csv(std::span<const StepResult> results) {
  std::string header, rows;
  for (const StepResult& result : results) {
    const bool is_first = header.empty();
    const std::vector<Column> columns = columns_of(result);
    for (size_t i = 0; i < columns.size(); ++i) {
      const char* separator = i + 1 == columns.size() ? "\n" : ",";
      if (is_first) header += columns[i].first + separator;
      rows += columns[i].second + separator;
    }
  }
  return header + rows;
}

}  // namespace herdsim

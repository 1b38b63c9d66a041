#include "tools/validation/validation_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/table.h"
#include "sim/base/text.h"
#include "tools/simulation/simulate_step.h"
#include "tools/validation/row_clock.h"

namespace herdsim {
namespace {

RowPrediction predict(const RunRow& row, const RowParts& parts, MachineMemo& machines) {
  RowPrediction out{.id = row.id,
                    .software = row.software,
                    .predicted_step_time_s = std::nullopt,
                    .target_step_time_s = row.target_step_time_s,
                    .peak_memory = std::nullopt,
                    .allocator = std::nullopt,
                    .of_measured = std::nullopt,
                    .device_memory = Bytes()};
  RowScenario scenario = scenario_of_row(row, parts);
  out.assumed = std::move(scenario.assumed);
  out.skipped_because = std::move(scenario.skipped_because);
  if (!out.skipped_because.empty()) return out;
  try {
    settle_clock(scenario, machines);
    out.skipped_because = std::move(scenario.skipped_because);
    if (!out.skipped_because.empty()) return out;
    const StepResult result = simulate_step(scenario.scenario, {.result_alone = true}, machines).result;
    out.predicted_step_time_s = result.step_time.seconds();
    out.account_s = result.time_account_seconds();
    if (result.peak_stage() != nullptr) out.peak_memory = result.peak_stage()->peak;
    out.allocator = allocator_memory(scenario.scenario);
    out.device_memory = scenario.scenario.profile.hbm;
    out.of_measured = compare_memory(row, *out.allocator, out.device_memory);
  } catch (const SpecError& error) {
    const Fault& first = error.faults().front();
    out.skipped_because = first.field + ": " + first.problem;
  }
  return out;
}

// Of each row the first of the same run, all of whose cells are equal. Published grids repeat their
// runs.
std::vector<size_t> first_of_same_run(const std::vector<RunRow>& rows) {
  std::map<std::string_view, size_t> first;
  std::vector<size_t> out;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string_view configuration = rows[i].configuration;
    out.push_back(configuration.empty() ? i : first.emplace(configuration, i).first->second);
  }
  return out;
}

ErrorTable errors_of(const std::vector<RowPrediction>& rows, bool by_software) {
  ErrorTable table;
  for (const RowPrediction& row : rows) {
    if (!row.error()) continue;
    table.add(by_software ? row.software : "all", *row.predicted_step_time_s,
              *row.target_step_time_s);
  }
  return table;
}

size_t count_predicted(const std::vector<RowPrediction>& rows) {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [](const RowPrediction& row) {
    return row.predicted_step_time_s.has_value();
  }));
}

nlohmann::ordered_json account_json(const RowPrediction& row) {
  if (!row.predicted_step_time_s) return nullptr;
  nlohmann::ordered_json account;
  for (size_t i = 0; i < kTimeTerms; ++i) {
    account[std::string(kTimeTermNames[i])] = row.account_s[i];
  }
  return account;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

std::string number_or_blank(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string percent(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

std::string error_table(const std::string& of, const std::vector<ErrorSummary>& groups) {
  TextTable table({{of},
                   {"rows", Align::kRight},
                   {"median", Align::kRight},
                   {"90 % below", Align::kRight},
                   {"bias", Align::kRight}});
  for (const ErrorSummary& s : groups) {
    table.add_row({s.group, std::to_string(s.count), percent(s.median), percent(s.p90),
                   fmt::format("{:+.1f} %", 100 * s.bias)});
  }
  return table.text();
}

nlohmann::ordered_json bytes_or_null(const std::optional<Bytes>& bytes) {
  return bytes ? nlohmann::ordered_json(bytes->count()) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::optional<double> RowPrediction::error() const {
  if (!predicted_step_time_s || !target_step_time_s) return std::nullopt;
  return *predicted_step_time_s / *target_step_time_s - 1;
}

std::vector<RowPrediction> predict_rows(const std::vector<RunRow>& rows, const RowParts& parts,
                                        int threads, const RowProgress& progress) {
  std::vector<RowPrediction> out(rows.size());
  const std::vector<size_t> first = first_of_same_run(rows);
  std::atomic<size_t> next = 0, done = 0;
  MachineMemo machines;
  const auto work = [&] {
    for (size_t i = next++; i < rows.size(); i = next++) {
      if (first[i] == i) out[i] = predict(rows[i], parts, machines);
      if (++done; progress) progress(done, rows.size());
    }
  };
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t wanted = threads > 0 ? static_cast<size_t>(threads) : cores;
  std::vector<std::jthread> pool;
  for (size_t t = 1; t < std::min(wanted, rows.size()); ++t) pool.emplace_back(work);
  work();
  pool.clear();  // joins
  for (size_t i = 0; i < rows.size(); ++i) {
    if (first[i] == i) continue;
    out[i] = out[first[i]];
    out[i].id = rows[i].id;
    out[i].target_step_time_s = rows[i].target_step_time_s;
    if (!out[i].allocator) continue;
    out[i].of_measured = compare_memory(rows[i], *out[i].allocator, out[i].device_memory);
  }
  return out;
}

ErrorSummary overall_error(const std::vector<RowPrediction>& rows) {
  const std::vector<ErrorSummary> all = errors_of(rows, false).summaries();
  return all.empty() ? ErrorSummary{} : all.front();
}

std::vector<ErrorSummary> error_by_software(const std::vector<RowPrediction>& rows) {
  return errors_of(rows, true).summaries();
}

std::vector<ErrorSummary> memory_error_by_software(const std::vector<RowPrediction>& rows) {
  ErrorTable table;
  for (const RowPrediction& row : rows) {
    if (!row.of_measured) continue;
    table.add(row.software, static_cast<double>(row.of_measured->predicted.count()),
              static_cast<double>(row.of_measured->measured.count()));
  }
  return table.summaries();
}

std::string validation_table(const std::vector<RowPrediction>& rows) {
  std::vector<ErrorSummary> groups = error_by_software(rows);
  if (ErrorSummary all = overall_error(rows); all.count > 0) groups.push_back(std::move(all));
  const size_t predicted = count_predicted(rows);
  std::string text = error_table("software", groups);
  text +=
      fmt::format("\n{} of {} rows predicted; error of the step time, bias its median with sign\n",
                  predicted, rows.size());
  const std::vector<ErrorSummary> memory = memory_error_by_software(rows);
  if (!memory.empty()) {
    text += "\n" + error_table("memory", memory) +
            "\nof PyTorch's allocator, where it filled no more than three quarters of the device\n";
  }
  if (predicted == rows.size()) return text;
  std::vector<std::pair<std::string, size_t>> reasons;
  for (const RowPrediction& row : rows) {
    if (row.skipped_because.empty()) continue;
    const auto found = std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) {
      return reason.first == row.skipped_because;
    });
    if (found == reasons.end()) {
      reasons.emplace_back(row.skipped_because, 1);
    } else {
      ++found->second;
    }
  }
  TextTable skipped({{"skipped", Align::kRight}, {"because", Align::kWrap}});
  for (const auto& [reason, count] : reasons) skipped.add_row({std::to_string(count), reason});
  return text + "\n" + skipped.text();
}

std::string validation_json(const std::vector<RowPrediction>& rows) {
  nlohmann::ordered_json out;
  out["rows"] = nlohmann::ordered_json::array();
  for (const RowPrediction& row : rows) {
    nlohmann::ordered_json line;
    line["id"] = row.id;
    line["predicted_step_time_s"] = number_or_null(row.predicted_step_time_s);
    line["target_step_time_s"] = number_or_null(row.target_step_time_s);
    line["error"] = number_or_null(row.error());
    line["time_account_s"] = account_json(row);
    line["peak_memory_bytes"] = bytes_or_null(row.peak_memory);
    line["reserved_memory_bytes"] =
        bytes_or_null(row.allocator ? std::optional(row.allocator->reserved) : std::nullopt);
    line["allocated_memory_bytes"] =
        bytes_or_null(row.allocator ? std::optional(row.allocator->allocated) : std::nullopt);
    line["assumed"] = row.assumed;
    line["skipped_because"] = row.skipped_because;
    out["rows"].push_back(std::move(line));
  }
  const size_t predicted = count_predicted(rows);
  const ErrorSummary all = overall_error(rows);
  const auto figure = [&](double value) {
    return number_or_null(all.count > 0 ? std::optional(value) : std::nullopt);
  };
  out["predicted"] = predicted;
  out["skipped"] = rows.size() - predicted;
  out["median_abs_error"] = figure(all.median);
  out["p90_abs_error"] = figure(all.p90);
  out["bias"] = figure(all.bias);
  return out.dump(1) + "\n";
}

std::string validation_csv(const std::vector<RowPrediction>& rows) {
  std::string out =
      "id,predicted_step_time_s,target_step_time_s,error,peak_memory_bytes,assumed,"
      "skipped_because\n";
  for (const RowPrediction& row : rows) {
    out += fmt::format(
        "{},{},{},{},{},{},{}\n", csv_field(row.id), number_or_blank(row.predicted_step_time_s),
        number_or_blank(row.target_step_time_s), number_or_blank(row.error()),
        row.peak_memory ? std::to_string(row.peak_memory->count()) : "",
        csv_field(fmt::format("{}", fmt::join(row.assumed, "; "))), csv_field(row.skipped_because));
  }
  return out;
}

}  // namespace herdsim

#include "tools/herdsim/validate_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <thread>

#include "sim/base/error.h"
#include "sim/job/reliability_targets.h"
#include "tools/herdsim/progress_line.h"
#include "tools/herdsim/version.h"
#include "tools/validation/published_scenarios.h"
#include "tools/validation/reliability_report.h"
#include "tools/validation/row_causes.h"
#include "tools/validation/run_table.h"
#include "tools/validation/validation_report.h"
#include "traces/db/run_database.h"

namespace herdsim {
namespace {

// A suite's predictions, for `herdsim report`.
void record(const std::string& suite, std::vector<Comparison> comparisons, const Options& options) {
  if (options.db.empty()) return;
  for (Comparison& comparison : comparisons) comparison.version = std::string(kVersion);
  RunDatabase(options.db).add_comparisons(suite, comparisons);
}

std::vector<Comparison> comparisons_of(const std::vector<RowPrediction>& rows) {
  std::vector<Comparison> comparisons;
  for (const RowPrediction& row : rows) {
    if (!row.error()) continue;
    comparisons.push_back({.name = row.id,
                           .quantity = "step_time",
                           .unit = "s",
                           .predicted = *row.predicted_step_time_s,
                           .published = *row.target_step_time_s,
                           .allowed = std::nullopt,
                           .source = row.software,
                           .version = ""});
  }
  return comparisons;
}

std::vector<Comparison> comparisons_of(const std::vector<ReliabilityTarget>& targets) {
  std::vector<Comparison> comparisons;
  for (const ReliabilityTarget& target : targets) {
    comparisons.push_back(
        {.name = std::string(target.id),
         .quantity = std::string(target.what),
         .unit = std::string(target.unit),
         .predicted = target.predicted,
         .published = target.published,
         .allowed = std::max(target.high - target.published, target.published - target.low),
         .source = std::string(target.source),
         .version = ""});
  }
  return comparisons;
}

std::vector<Comparison> comparisons_of(const std::vector<PublishedComparison>& rows) {
  std::vector<Comparison> comparisons;
  for (const PublishedComparison& row : rows) {
    comparisons.push_back({.name = row.scenario,
                           .quantity = "mfu",
                           .unit = "%",
                           .predicted = 100 * row.predicted_mfu,
                           .published = 100 * row.published_mfu,
                           .allowed = 100 * row.tolerance,
                           .source = row.source,
                           .version = ""});
  }
  return comparisons;
}

int explain_error(ErrorQuestion question, const Options& options, Streams streams) {
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const ErrorCauses causes = error_causes(std::move(question), threads);
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", error_causes_table(causes));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", error_causes_json(causes));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", error_causes_csv(causes));
      break;
  }
  return kExitDone;
}

int validate_table(const Options& options, Streams streams) {
  const std::vector<RunRow> rows = read_run_table(options.table);
  const RowParts parts(options.sets);
  if (!options.why.empty()) {
    std::vector<std::string> ids;
    for (const RunRow& row : rows) ids.push_back(row.id);
    return explain_error(question_of_row(rows[index_of_row(ids, options.why)], parts), options,
                         streams);
  }
  std::vector<RowPrediction> predictions;
  {
    ProgressLine progress(options, streams);
    predictions = predict_rows(rows, parts, options.threads, [&](size_t done, size_t of) {
      progress.show(static_cast<int64_t>(done), static_cast<int64_t>(of), "rows");
    });
  }
  record(std::filesystem::path(options.table).filename().string(), comparisons_of(predictions),
         options);
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", validation_table(predictions));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", validation_json(predictions));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", validation_csv(predictions));
      break;
  }
  return kExitDone;
}

int validate_reliability(const Options& options, Streams streams) {
  const int threads =
      options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<ReliabilityTarget> targets = reliability_targets(threads);
  record("reliability", comparisons_of(targets), options);
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", reliability_table(targets));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", reliability_json(targets));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", reliability_csv(targets));
      break;
  }
  const bool hold = std::all_of(targets.begin(), targets.end(),
                                [](const ReliabilityTarget& target) { return target.holds(); });
  return hold ? kExitDone : kExitOutOfBounds;
}

int validate_catalogue(const Options& options, Streams streams) {
  const std::vector<PublishedComparison> rows = compare_published_scenarios();
  if (!options.why.empty()) {
    std::vector<std::string> names;
    for (const PublishedComparison& row : rows) names.push_back(row.scenario);
    return explain_error(
        question_of_published(rows[index_of_row(names, options.why)], options.sets), options,
        streams);
  }
  record("steps", comparisons_of(rows), options);
  switch (options.format) {
    case OutputFormat::kTable:
      fmt::print(streams.out, "{}", published_table(rows));
      break;
    case OutputFormat::kJson:
      fmt::print(streams.out, "{}", published_json(rows));
      break;
    case OutputFormat::kCsv:
      fmt::print(streams.out, "{}", published_csv(rows));
      break;
  }
  const bool within = std::all_of(rows.begin(), rows.end(),
                                  [](const PublishedComparison& row) { return row.within(); });
  return within ? kExitDone : kExitOutOfBounds;
}

}  // namespace

int run_validate_command(const Options& options, Streams streams) {
  constexpr std::string_view kSteps = "steps", kReliability = "reliability";
  const auto refuse = [](std::string field, std::string problem, std::string allowed) {
    throw SpecError({{.field = std::move(field), .problem = std::move(problem), .allowed = std::move(allowed)}});
  };
  if (!options.table.empty() && !options.suite.empty()) {
    refuse("--suite", "is given beside --table", "one of the two");
  }
  if (!options.table.empty()) return validate_table(options, streams);
  if (!options.sets.empty() && options.why.empty()) {
    refuse("--set", "changes nothing: published runs are compared as the catalogue has them", "with --table or --why");
  }
  if (options.suite == kReliability && !options.why.empty()) {
    Fault fault;
    fault.field = "--why";
    fault.problem = "explains errors of steps, and this suite has none";
    fault.allowed = "with --table, or with --suite steps";
    throw SpecError({fault});
  }
  if (options.suite == kReliability) return validate_reliability(options, streams);
  if (!options.suite.empty() && options.suite != kSteps) {
    Fault fault;
    fault.field = "--suite";
    fault.problem = fmt::format("there is no suite \"{}\"", options.suite);
    fault.allowed = "steps, reliability";
    fault.nearest = nearest_name(options.suite, {std::string(kSteps), std::string(kReliability)});
    throw SpecError({fault});
  }
  return validate_catalogue(options, streams);
}

}  // namespace herdsim

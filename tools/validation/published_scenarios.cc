#include "tools/validation/published_scenarios.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

constexpr double kTolerance = 0.015;
constexpr double kLongContextTolerance = 0.02;
constexpr int64_t kLongContext = 100'000;

}  // namespace

bool PublishedComparison::within() const {
  return std::abs(predicted_mfu - published_mfu) <= tolerance;
}

std::vector<PublishedComparison> compare_published_scenarios() {
  std::vector<PublishedComparison> rows;
  for (const std::string& name : catalog_names(CatalogKind::kScenarios)) {
    const Scenario scenario = load_scenario(name);
    if (!scenario.published || scenario.published->mfu <= 0) continue;
    const StepResult result = simulate_step(scenario, {.result_alone = true}).result;
    rows.push_back({.scenario = name,
                    .source = scenario.published->source,
                    .predicted_mfu = result.mfu_causal(),
                    .predicted_mfu_full = result.mfu_full(),
                    .published_mfu = scenario.published->mfu,
                    .tolerance = scenario.training.sequence_length > kLongContext
                                     ? kLongContextTolerance
                                     : kTolerance});
  }
  return rows;
}

std::string published_table(const std::vector<PublishedComparison>& rows) {
  TextTable table({{"scenario"},
                   {"MFU", Align::kRight},
                   {"published", Align::kRight},
                   {"points", Align::kRight},
                   {"allowed", Align::kRight},
                   {""},
                   {"full attention", Align::kRight}});
  for (const PublishedComparison& row : rows) {
    table.add_row({row.scenario, fmt::format("{:.1f} %", 100 * row.predicted_mfu),
                   fmt::format("{:.1f} %", 100 * row.published_mfu),
                   fmt::format("{:+.1f}", 100 * (row.predicted_mfu - row.published_mfu)),
                   fmt::format("{:.1f}", 100 * row.tolerance), row.within() ? "" : "outside",
                   fmt::format("{:.1f} %", 100 * row.predicted_mfu_full)});
  }
  return table.text();
}

std::string published_json(const std::vector<PublishedComparison>& rows) {
  nlohmann::ordered_json out;
  out["published"] = nlohmann::ordered_json::array();
  for (const PublishedComparison& row : rows) {
    nlohmann::ordered_json line;
    line["scenario"] = row.scenario;
    line["predicted_mfu"] = row.predicted_mfu;
    line["predicted_mfu_full_attention"] = row.predicted_mfu_full;
    line["published_mfu"] = row.published_mfu;
    line["tolerance"] = row.tolerance;
    line["within"] = row.within();
    line["source"] = row.source;
    out["published"].push_back(std::move(line));
  }
  return out.dump(1) + "\n";
}

std::string published_csv(const std::vector<PublishedComparison>& rows) {
  std::string out =
      "scenario,predicted_mfu,predicted_mfu_full_attention,published_mfu,tolerance,within\n";
  for (const PublishedComparison& row : rows) {
    out += fmt::format("{},{},{},{},{},{}\n", row.scenario, row.predicted_mfu,
                       row.predicted_mfu_full, row.published_mfu, row.tolerance, row.within());
  }
  return out;
}

}  // namespace herdsim

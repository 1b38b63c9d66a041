// How far predictions are from published runs: frozen. Tolerances may be tightened freely;
// loosening one is a commit of its own that says why. The runs themselves are not part of this
// repository: without them the test is skipped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "calibrate/profile/csv_table.h"
#include "sim/base/table.h"
#include "tools/validation/validation_report.h"

namespace herdsim {
namespace {

// Global constants are set on the rows of `calibrate`; those of `validate` judge. In per cent. The
// baselines beside are a page of arithmetic and a frozen study of mechanisms, on the same rows;
// negative: they predict none.
struct AccuracyRow {
  std::string group;  // "torch-fsdp bf16 H100 validate"
  double median, p90;
  double naive_median, naive_p90, study_median, study_p90;
};
const std::vector<AccuracyRow> kReached = {
    {"jax-xla bf16 H100 tier 1 calibrate", 0.4, 0.9, 18.7, 19.2, 0.1, 0.4},
    {"jax-xla bf16 H100 tier 1 validate", 2.2, 3.3, 22.3, 23.4, 4.2, 5.5},
    {"jax-xla fp8 H100 tier 1 calibrate", 13.0, 15.0, 16.4, 29.8, 2.9, 13.2},
    {"jax-xla fp8 H100 tier 1 validate", 2.6, 4.3, 29.5, 32.3, 16.3, 18.8},
    {"jax-xla bf16 H100 tier 2 validate", 5.6, 7.3, 30.4, 31.3, 19.6, 20.0},
    {"jax-xla fp8 H100 tier 2 calibrate", 1.0, 4.0, 5.6, 11.3, 16.8, 32.9},
    {"jax-xla fp8 H100 tier 2 validate", 3.4, 4.2, 7.0, 9.7, 13.2, 14.1},
    {"internevo bf16 A100 tier 3 calibrate", 4.3, 17.8, -1, -1, -1, -1},
    {"megascale bf16 A100 tier 3 validate", 10.2, 13.9, -1, -1, -1, -1},
    {"megatron-2021 bf16 A100 tier 3 calibrate", 6.3, 14.3, -1, -1, -1, -1},
    {"megatron-2021 bf16 A100 tier 3 validate", 5.9, 13.5, -1, -1, -1, -1},
    {"megatron-2022 bf16 A100 tier 3 calibrate", 9.6, 10.6, -1, -1, -1, -1},
    {"megatron-2022 bf16 A100 tier 3 validate", 4.0, 5.5, -1, -1, -1, -1},
    {"megatron-2023 bf16 A100 tier 3 calibrate", 2.0, 11.8, -1, -1, -1, -1},
    {"megatron-2023 bf16 A100 tier 3 validate", 0.9, 3.2, -1, -1, -1, -1},
    {"megatron-2023 bf16 H800 tier 2 calibrate", 4.3, 6.8, -1, -1, -1, -1},
    {"megatron-2023 bf16 H800 tier 2 validate", 2.4, 6.2, -1, -1, -1, -1},
    {"megatron-te bf16 A100 tier 3 calibrate", 5.2, 9.4, 69.9, 71.7, 5.2, 10.6},
    {"megatron-te bf16 A100 tier 3 validate", 3.0, 4.8, 69.0, 70.4, 8.9, 17.1},
    {"megatron-te bf16 H100 tier 1 calibrate", 1.2, 4.6, 1.7, 25.3, 1.7, 4.8},
    {"megatron-te bf16 H100 tier 1 validate", 1.9, 3.7, 2.1, 4.9, 1.8, 4.7},
    {"megatron-te bf16 H100 tier 2 validate", 13.6, 14.3, 20.5, 27.5, 22.3, 25.2},
    {"megatron-te fp8 H100 tier 1 calibrate", 3.1, 6.3, 40.3, 67.4, 3.7, 7.4},
    {"megatron-te fp8 H100 tier 1 validate", 2.3, 5.7, 39.4, 64.0, 3.4, 7.0},
    {"megatron-te fp8 H100 tier 2 calibrate", 7.1, 12.7, 30.3, 41.5, 28.5, 34.7},
    {"megatron-te fp8 H100 tier 2 validate", 4.8, 5.7, 21.6, 41.9, 23.4, 33.4},
    // Mixtures of experts; no baseline predicts any.
    {"megatron-te bf16 H100 tier 4 calibrate", 3.3, 15.3, -1, -1, -1, -1},
    {"megatron-te bf16 H100 tier 4 validate", 0.9, 2.6, -1, -1, -1, -1},
    {"megatron-te fp8 H100 tier 4 calibrate", 2.2, 3.2, -1, -1, -1, -1},
    {"megatron-te fp8 H100 tier 4 validate", 4.7, 41.2, -1, -1, -1, -1},
    {"megatron-te fp8 B200 tier 4 validate", 4.0, 6.9, -1, -1, -1, -1},
    {"megatron-te fp8 GB20 tier 4 calibrate", 1.1, 3.4, -1, -1, -1, -1},
    {"megatron-te fp8 GB20 tier 4 validate", 3.5, 7.5, -1, -1, -1, -1},
    {"megatron-te fp8 GB30 tier 4 validate", 7.9, 9.9, -1, -1, -1, -1},
    {"nanotron bf16 H100 tier 1 calibrate", 3.0, 11.4, 47.9, 79.5, 3.4, 12.0},
    {"nanotron bf16 H100 tier 1 validate", 3.3, 9.5, 52.8, 84.5, 4.5, 20.0},
    {"nanotron bf16 H100 tier 2 calibrate", 6.0, 17.1, 63.9, 91.3, 2.9, 18.5},
    {"nanotron bf16 H100 tier 2 validate", 8.7, 23.3, 42.4, 90.1, 6.0, 16.9},
    {"torch-fsdp bf16 A100 tier 3 calibrate", 7.3, 23.7, 72.2, 82.7, 12.4, 25.9},
    {"torch-fsdp bf16 A100 tier 3 validate", 3.5, 15.1, 70.5, 78.1, 7.2, 22.5},
    {"torch-fsdp bf16 H100 tier 1 calibrate", 0.9, 5.4, 27.8, 42.1, 1.4, 6.1},
    {"torch-fsdp bf16 H100 tier 1 validate", 1.3, 4.1, 24.4, 41.7, 3.1, 5.8},
    {"torch-fsdp2 bf16 A100 tier 3 validate", 3.3, 5.9, 73.3, 73.9, 7.5, 8.6},
    {"torch-fsdp2 bf16 H100 tier 2 calibrate", 2.5, 4.2, 36, 41, 0.3, 0.3},
    {"torch-fsdp2 bf16 H100 tier 2 validate", 2.2, 3.3, 30, 37, 6.7, 6.9},
    {"torch-fsdp2 bf16 H200 tier 2 calibrate", 7.7, 12.5, 34.4, 54.4, 14.6, 32.4},
    {"torch-fsdp2 bf16 H200 tier 2 validate", 3.8, 5.3, 25.1, 42.9, 13.2, 17.6},
    {"torch-fsdp2 fp8 H100 tier 2 calibrate", 2.6, 21.2, 34.2, 55.6, 2.0, 24.3},
    {"torch-fsdp2 fp8 H100 tier 2 validate", 2.3, 21.3, 10.8, 28.0, 13.2, 28.1},
};

// Of nanotron's tier 1 by where tensor ranks are; the bias, too.
struct PlanAccuracy {
  std::string group;
  double median, p90, bias;
};
const std::vector<PlanAccuracy> kPlans = {
    {"calibrate, TP in a host or PP", 3.1, 10.6, 1.4},
    {"calibrate, TP over hosts", 1.9, 11.5, 0.7},
    {"validate, TP in a host or PP", 3.4, 9.5, 0.5},
    {"validate, TP over hosts", 3.1, 9.1, 0.5},
};

std::string group_of(const CsvTable& table, size_t row) {
  const auto cell = [&](std::string_view column) -> const std::string& {
    return table.cell(row, *table.column(column));
  };
  const std::string type = cell("precision").starts_with("fp8") ? "fp8" : "bf16";
  const std::string gpu = cell("gpu").substr(0, 4);
  return cell("software") + " " + type + " " + (gpu == "A800" ? "A100" : gpu) + " tier " +
         cell("tier") + " " + cell("split");
}

// The table of published runs and what is predicted of them, once for all tests; empty without the table.
struct Published {
  std::optional<CsvTable> table;
  std::vector<RunRow> runs;
  std::vector<RowPrediction> rows;

  Published() {
    const std::string path = std::string(HERDSIM_SOURCE_DIR) + "/../shared/data/published/published_runs.csv";
    std::ifstream file(path, std::ios::binary);
    if (!file) return;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    table.emplace(text, path);
    runs = parse_run_table(text, path);
    rows = predict_rows(runs, RowParts({}), 0);
  }
  bool is_nanotron(size_t row) const {
    return runs[row].software == "nanotron" && table->cell(row, *table->column("tier")) == "1" &&
           rows[row].error().has_value();
  }
};
const Published& published() {
  static const Published kPublished;
  return kPublished;
}

TEST(Accuracy, published_runs_are_within_what_is_reached) {
  if (!published().table) GTEST_SKIP() << "the table of published runs is not beside this checkout";
  const CsvTable& table = *published().table;
  const std::vector<RowPrediction>& rows = published().rows;
  ASSERT_EQ(rows.size(), table.rows());
  ErrorTable errors;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].error()) continue;
    errors.add(group_of(table, r), *rows[r].predicted_step_time_s, *rows[r].target_step_time_s);
  }
  std::map<std::string, ErrorSummary> found;
  for (const ErrorSummary& summary : errors.summaries()) found[summary.group] = summary;
  TextTable report({{"median / p90 in per cent"},
                    {"rows", Align::kRight},
                    {"here", Align::kRight},
                    {"arithmetic", Align::kRight},
                    {"study", Align::kRight}});
  const auto pair = [](double median, double p90) {
    return median < 0 ? "" : fmt::format("{:.1f} / {:.1f}", median, p90);
  };
  for (const AccuracyRow& row : kReached) {
    ASSERT_TRUE(found.contains(row.group)) << row.group;
    const ErrorSummary& summary = found[row.group];
    report.add_row({row.group, std::to_string(summary.count),
                    pair(100 * summary.median, 100 * summary.p90),
                    pair(row.naive_median, row.naive_p90), pair(row.study_median, row.study_p90)});
    EXPECT_LE(100 * summary.median, row.median) << row.group;
    EXPECT_LE(100 * summary.p90, row.p90) << row.group;
  }
  std::printf("%s", report.text().c_str());
}

TEST(Accuracy, nanotron_is_within_its_goals_wherever_tensor_ranks_are) {
  if (!published().table) GTEST_SKIP() << "the table of published runs is not beside this checkout";
  const Published& p = published();
  ErrorTable errors;
  for (size_t r = 0; r < p.rows.size(); ++r) {
    if (!p.is_nanotron(r)) continue;
    const bool in_host = p.runs[r].pp.value_or(1) > 1 || p.runs[r].tp.value_or(1) <= 8;
    errors.add(p.table->cell(r, *p.table->column("split")) + (in_host ? ", TP in a host or PP" : ", TP over hosts"),
               *p.rows[r].predicted_step_time_s, *p.rows[r].target_step_time_s);
  }
  std::map<std::string, ErrorSummary> found;
  for (const ErrorSummary& summary : errors.summaries()) found[summary.group] = summary;
  ASSERT_EQ(found.size(), kPlans.size());
  for (const PlanAccuracy& plan : kPlans) {
    const ErrorSummary& summary = found[plan.group];
    EXPECT_LE(100 * summary.median, plan.median) << plan.group;
    EXPECT_LE(100 * summary.p90, plan.p90) << plan.group;
    EXPECT_LE(100 * std::abs(summary.bias), plan.bias) << plan.group;
  }
}

// Pairs of plans of one model on as many GPUs: how many more are in the right order than in the wrong one (Kendall's
// tau), of all pairs and in the median group of five plans or more. Each was run for one step: twins differ by some 4
// %.
TEST(Accuracy, nanotron_plans_are_ranked_as_they_ran) {
  if (!published().table) GTEST_SKIP() << "the table of published runs is not beside this checkout";
  const Published& p = published();
  std::map<std::pair<std::string, int64_t>, std::vector<size_t>> groups;
  for (size_t r = 0; r < p.rows.size(); ++r) {
    if (p.is_nanotron(r)) groups[{p.runs[r].model, *p.runs[r].num_gpus}].push_back(r);
  }
  std::vector<double> taus;
  double surplus = 0, pairs = 0;
  for (const auto& [key, members] : groups) {
    double of_group = 0, pairs_of_group = 0;
    for (size_t a = 0; a < members.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const size_t i = members[a], j = members[b];
        const auto per_sequence = [&](double seconds, size_t row) {
          return seconds / static_cast<double>(*p.runs[row].global_batch);
        };
        const double measured =
            per_sequence(*p.rows[i].target_step_time_s, i) - per_sequence(*p.rows[j].target_step_time_s, j);
        const double predicted =
            per_sequence(*p.rows[i].predicted_step_time_s, i) - per_sequence(*p.rows[j].predicted_step_time_s, j);
        of_group += measured * predicted > 0 ? 1 : -1;
        ++pairs_of_group;
      }
    }
    surplus += of_group;
    pairs += pairs_of_group;
    if (members.size() >= 5) taus.push_back(of_group / pairs_of_group);
  }
  ASSERT_GT(taus.size(), 10u);
  std::nth_element(taus.begin(), taus.begin() + static_cast<int64_t>(taus.size() / 2), taus.end());
  EXPECT_GE(taus[taus.size() / 2], 0.85);
  EXPECT_GE(surplus / pairs, 0.85);
}

}  // namespace
}  // namespace herdsim

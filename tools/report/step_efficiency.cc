#include "tools/report/step_efficiency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/metrics/term_labels.h"
#include "tools/report/text_layout.h"

namespace herdsim {
namespace {

double gpu_seconds_per_million_tokens(const StepResult& r) {
  return static_cast<double>(r.gpus) * r.step_time.seconds() * 1e6 /
         static_cast<double>(r.tokens_per_step);
}

std::string verdict(const StepResult& a, const StepResult& b, const EfficiencyTerm& largest) {
  const double total_a = gpu_seconds_per_million_tokens(a);
  const double total_b = gpu_seconds_per_million_tokens(b);
  if (total_a == total_b) {
    return fmt::format("B ({}) spends the same GPU time on a token as A ({}).", b.scenario,
                       a.scenario);
  }
  return fmt::format(
      "B ({}) spends {:.1f} % {} GPU time on the same tokens than A ({}): its MFU is {:.2f} % "
      "against {:.2f} %. Most "
      "of the difference is {} ({:.0f} %).",
      b.scenario, std::abs(total_b / total_a - 1) * 100, total_b > total_a ? "more" : "less",
      a.scenario, 100 * b.mfu_causal(), 100 * a.mfu_causal(), label_of(largest.term),
      100 * (largest.b - largest.a) / (total_b - total_a));
}

}  // namespace

std::vector<EfficiencyTerm> efficiency_terms(const StepResult& a, const StepResult& b) {
  const double total_a = gpu_seconds_per_million_tokens(a);
  const double total_b = gpu_seconds_per_million_tokens(b);
  const double points = 100 * (b.mfu_causal() - a.mfu_causal());
  std::vector<EfficiencyTerm> terms;
  for (size_t t = 0; t < kTimeTerms; ++t) {
    const auto per_million = [t](const StepResult& r) {
      return static_cast<double>(r.account_rank_nanoseconds[t]) * 1e-3 /
             static_cast<double>(r.tokens_per_step);
    };
    EfficiencyTerm term{kTimeTermNames[t], per_million(a), per_million(b), 0};
    if (total_a != total_b)
      term.mfu_points = points * (term.b - term.a) / (total_b - total_a) + 0.0;  // never -0
    terms.push_back(term);
  }
  std::stable_sort(terms.begin(), terms.end(),
                   [](const EfficiencyTerm& x, const EfficiencyTerm& y) {
                     return std::abs(x.b - x.a) > std::abs(y.b - y.a);
                   });
  return terms;
}

std::string efficiency_table(const StepResult& a, const StepResult& b) {
  const double total_a = gpu_seconds_per_million_tokens(a);
  const double total_b = gpu_seconds_per_million_tokens(b);
  const std::vector<EfficiencyTerm> terms = efficiency_terms(a, b);
  std::string text = paragraph("", verdict(a, b, terms.front()));
  text += "\nGPU-seconds a million tokens\n";
  TextTable table({{"term"},
                   {"A", Align::kRight},
                   {"B", Align::kRight},
                   {"B - A", Align::kRight},
                   {"MFU points", Align::kRight}});
  for (const EfficiencyTerm& term : terms) {
    if (term.a == 0 && term.b == 0) continue;
    table.add_row({std::string(label_of(term.term)), fmt::format("{:.3f}", term.a),
                   fmt::format("{:.3f}", term.b), fmt::format("{:+.3f}", term.b - term.a),
                   fmt::format("{:+.2f}", term.mfu_points)});
  }
  table.add_row({"sum", fmt::format("{:.3f}", total_a), fmt::format("{:.3f}", total_b),
                 fmt::format("{:+.3f}", total_b - total_a),
                 fmt::format("{:+.2f}", 100 * (b.mfu_causal() - a.mfu_causal()))});
  return text + table.text();
}

std::string efficiency_json(const StepResult& a, const StepResult& b) {
  nlohmann::ordered_json terms = nlohmann::ordered_json::array();
  for (const EfficiencyTerm& term : efficiency_terms(a, b)) {
    terms.push_back({{"term", term.term},
                     {"a", term.a},
                     {"b", term.b},
                     {"difference", term.b - term.a},
                     {"mfu_points", term.mfu_points}});
  }
  const nlohmann::ordered_json all = {
      {"a", a.scenario},
      {"b", b.scenario},
      {"gpu_seconds_per_million_tokens",
       {{"a", gpu_seconds_per_million_tokens(a)},
        {"b", gpu_seconds_per_million_tokens(b)},
        {"difference", gpu_seconds_per_million_tokens(b) - gpu_seconds_per_million_tokens(a)}}},
      {"mfu", {{"a", a.mfu_causal()}, {"b", b.mfu_causal()}}},
      {"terms", terms}};
  return all.dump(2) + "\n";
}

std::string efficiency_matrix(std::span<const StepResult> steps) {
  constexpr size_t kLetters = 26;
  std::vector<TextTable::Column> columns = {{"GPU-seconds a million tokens"}, {"A", Align::kRight}};
  std::vector<std::string> sums = {"sum",
                                   fmt::format("{:.2f}", gpu_seconds_per_million_tokens(steps[0]))};
  for (size_t i = 1; i < steps.size(); ++i) {
    columns.push_back(
        {fmt::format("{} - A", static_cast<char>('A' + i % kLetters)), Align::kRight});
    sums.push_back(fmt::format("{:+.2f}", gpu_seconds_per_million_tokens(steps[i]) -
                                              gpu_seconds_per_million_tokens(steps[0])));
  }
  TextTable table(std::move(columns));
  const auto of = [](const StepResult& step, size_t term) {
    return static_cast<double>(step.account_rank_nanoseconds[term]) * 1e-3 /
           static_cast<double>(step.tokens_per_step);
  };
  for (size_t term = 0; term < kTimeTerms; ++term) {
    if (std::all_of(steps.begin(), steps.end(),
                    [&](const StepResult& step) { return of(step, term) == 0; })) {
      continue;
    }
    std::vector<std::string> row = {std::string(kTermLabels[term]),
                                    fmt::format("{:.2f}", of(steps[0], term))};
    for (size_t i = 1; i < steps.size(); ++i) {
      row.push_back(fmt::format("{:+.2f}", of(steps[i], term) - of(steps[0], term)));
    }
    table.add_row(std::move(row));
  }
  table.add_row(std::move(sums));
  return table.text();
}

}  // namespace herdsim

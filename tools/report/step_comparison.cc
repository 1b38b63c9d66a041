#include "tools/report/step_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/metrics/term_labels.h"
#include "tools/report/text_layout.h"

namespace herdsim {
namespace {

using Json = nlohmann::ordered_json;

// Of scenarios in a row of columns; more take another block.
constexpr size_t kColumnsInBlock = 7;

std::string letter(size_t index) {
  const std::string last(1, static_cast<char>('A' + index % 26));
  return index < 26 ? last : letter(index / 26 - 1) + last;
}

double peak_gigabytes(const StepResult& r) {
  const StageMemory* peak = r.peak_stage();
  return peak == nullptr ? 0 : static_cast<double>(peak->peak.count()) * 1e-9;
}

std::string fixed(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }
std::string signed_fixed(double value, int decimals) {
  return fmt::format("{:+.{}f}", value, decimals);
}

// Why the two step times must not be compared as they stand, or "".
std::string incomparable(const StepResult& a, const StepResult& b) {
  std::string out;
  if (a.gpus != b.gpus) {
    out += paragraph("note", fmt::format("A runs on {} GPUs and B on {}", count_text(a.gpus),
                                         count_text(b.gpus)));
  }
  if (a.tokens_per_step != b.tokens_per_step) {
    out += paragraph(
        "note",
        fmt::format(
            "A trains {} tokens a step and B {}: compare tokens per second and GPU, not step times",
            count_text(a.tokens_per_step), count_text(b.tokens_per_step)));
  }
  return out;
}

// Below what the table shows.
bool is_unchanged(const DifferenceTerm& term) { return std::abs(term.difference_s()) < 0.5e-4; }

std::string terms_table(const StepResult& a, const StepResult& b) {
  TextTable table({{"seconds, mean rank"},
                   {"A", Align::kRight},
                   {"B", Align::kRight},
                   {"B - A", Align::kRight},
                   {"of A", Align::kRight}});
  const double whole = a.step_time.seconds();
  const auto add = [&](std::string_view name, double of_a, double of_b) {
    table.add_row({std::string(name), fixed(of_a, 4), fixed(of_b, 4), signed_fixed(of_b - of_a, 4),
                   signed_fixed(100 * (of_b - of_a) / whole, 1) + " %"});
  };
  std::string unchanged;
  for (const DifferenceTerm& term : difference_terms(a, b)) {
    if (!is_unchanged(term)) {
      add(label_of(term.term), term.a_s, term.b_s);
    } else if (term.a_s > 0) {
      unchanged += (unchanged.empty() ? "" : ", ") + std::string(label_of(term.term));
    }
  }
  add("step", whole, b.step_time.seconds());
  return table.text() + (unchanged.empty() ? "" : paragraph("unchanged", unchanged));
}

std::string figures_table(const StepResult& a, const StepResult& b) {
  TextTable table({{""}, {"A", Align::kRight}, {"B", Align::kRight}, {"B - A", Align::kRight}});
  const auto add = [&](std::string name, double of_a, double of_b, int decimals) {
    table.add_row({std::move(name), fixed(of_a, decimals), fixed(of_b, decimals),
                   signed_fixed(of_b - of_a, decimals)});
  };
  add("TFLOP/s per GPU", a.flops_per_gpu_causal().teraflops(), b.flops_per_gpu_causal().teraflops(),
      1);
  if (a.peak.per_second() > 0 && b.peak.per_second() > 0) {
    add("MFU, % and points", 100 * a.mfu_causal(), 100 * b.mfu_causal(), 2);
  }
  add("tokens/s per GPU", a.tokens_per_second_per_gpu(), b.tokens_per_second_per_gpu(), 1);
  add("peak memory, GB", peak_gigabytes(a), peak_gigabytes(b), 2);
  return table.text();
}

std::string shares(std::span<const StepResult> results, size_t first, size_t last) {
  std::vector<TextTable::Column> columns = {{"share of the step, %"}};
  for (size_t i = first; i < last; ++i) columns.push_back({letter(i), Align::kRight});
  TextTable table(std::move(columns));
  for (size_t term = 0; term < kTimeTerms; ++term) {
    const bool is_absent = std::all_of(results.begin(), results.end(), [&](const StepResult& r) {
      return r.account_rank_nanoseconds[term] == 0;
    });
    if (is_absent) continue;
    std::vector<std::string> row = {std::string(kTermLabels[term])};
    for (const StepResult& r : results.subspan(first, last - first)) {
      row.push_back(fixed(100 * r.time_account_seconds()[term] / r.step_time.seconds(), 1));
    }
    table.add_row(std::move(row));
  }
  return "\n" + table.text();
}

}  // namespace

std::vector<DifferenceTerm> difference_terms(const StepResult& a, const StepResult& b) {
  const auto of_a = a.time_account_seconds();
  const auto of_b = b.time_account_seconds();
  std::vector<DifferenceTerm> terms;
  for (size_t i = 0; i < kTimeTerms; ++i) terms.push_back({kTimeTermNames[i], of_a[i], of_b[i]});
  std::stable_sort(terms.begin(), terms.end(),
                   [](const DifferenceTerm& x, const DifferenceTerm& y) {
                     return std::abs(x.difference_s()) > std::abs(y.difference_s());
                   });
  return terms;
}

std::string difference_table(const StepResult& a, const StepResult& b) {
  return paragraph("A", a.scenario) + paragraph("B", b.scenario) + incomparable(a, b) + "\n" +
         terms_table(a, b) + "\n" + figures_table(a, b);
}

std::string difference_json(const StepResult& a, const StepResult& b) {
  const auto pair_of = [](double of_a, double of_b) {
    return Json{{"a", of_a}, {"b", of_b}, {"difference", of_b - of_a}};
  };
  Json terms = Json::array();
  for (const DifferenceTerm& t : difference_terms(a, b)) {
    terms.push_back(
        {{"term", t.term}, {"a", t.a_s}, {"b", t.b_s}, {"difference", t.difference_s()}});
  }
  const bool has_peak_rates = a.peak.per_second() > 0 && b.peak.per_second() > 0;
  const StageMemory *peak_a = a.peak_stage(), *peak_b = b.peak_stage();
  Json json = {{"a", a.scenario},
               {"b", b.scenario},
               {"step_time_s", pair_of(a.step_time.seconds(), b.step_time.seconds())},
               {"mfu", has_peak_rates ? pair_of(a.mfu_causal(), b.mfu_causal()) : Json()},
               {"tokens_per_second_per_gpu",
                pair_of(a.tokens_per_second_per_gpu(), b.tokens_per_second_per_gpu())},
               {"peak_memory_bytes", Json()},
               {"terms_s", terms}};
  if (peak_a != nullptr && peak_b != nullptr) {
    json["peak_memory_bytes"] = {{"a", peak_a->peak.count()},
                                 {"b", peak_b->peak.count()},
                                 {"difference", (peak_b->peak - peak_a->peak).count()}};
  }
  return json.dump(2, ' ', false, nlohmann::detail::error_handler_t::replace) + "\n";
}

std::string comparison_table(std::span<const StepResult> results) {
  std::string out;
  TextTable table({{""},
                   {"GPUs", Align::kRight},
                   {"step s", Align::kRight},
                   {"MFU %", Align::kRight},
                   {"TFLOP/s", Align::kRight},
                   {"tok/s/GPU", Align::kRight},
                   {"bubble %", Align::kRight},
                   {"peak GB", Align::kRight},
                   {"fits", Align::kRight}});
  for (size_t i = 0; i < results.size(); ++i) {
    const StepResult& r = results[i];
    out += paragraph(letter(i), r.scenario);
    table.add_row({letter(i), count_text(r.gpus), fixed(r.step_time.seconds(), 4),
                   r.peak.per_second() > 0 ? fixed(100 * r.mfu_causal(), 2) : "-",
                   fixed(r.flops_per_gpu_causal().teraflops(), 1),
                   fixed(r.tokens_per_second_per_gpu(), 1), fixed(100 * r.bubble_fraction(), 1),
                   fixed(peak_gigabytes(r), 2), r.fits() ? "yes" : "no"});
  }
  out += "\n" + table.text();
  for (size_t first = 0; first < results.size(); first += kColumnsInBlock) {
    out += shares(results, first, std::min(first + kColumnsInBlock, results.size()));
  }
  std::string warnings;
  for (size_t i = 0; i < results.size(); ++i) {
    for (const std::string& warning : results[i].all_warnings()) {
      warnings += paragraph(fmt::format("warning, {}", letter(i)), warning);
    }
  }
  return warnings.empty() ? out : out + "\n" + warnings;
}

}  // namespace herdsim

#include "tools/study/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/check.h"
#include "sim/base/table.h"
#include "sim/base/text.h"

namespace herdsim {
namespace {

using Json = nlohmann::ordered_json;

// Of every replica, a figure in both runs.
template <class Figure>
RunDifference paired(std::string_view term, const RunResult& a, const RunResult& b,
                     const Figure& figure) {
  std::vector<double> of_a, differences;
  for (size_t i = 0; i < a.replicas.size(); ++i) {
    of_a.push_back(figure(a, a.replicas[i]));
    differences.push_back(figure(b, b.replicas[i]) - of_a.back());
  }
  const double mean = mean_interval(of_a).mean;
  const Interval difference = mean_interval(differences);
  return {term, mean, mean + difference.mean, difference};
}

double pace(const RunResult& run, const ReplicaResult& replica) {
  return static_cast<double>(replica.steps * run.tokens_per_step) / replica.horizon.seconds();
}

// Of a part of a replica's time, for 1e12 tokens.
double days_a_trillion(const RunResult& run, const ReplicaResult& replica, Duration time) {
  return time.seconds() / 86'400 * 1e12 / static_cast<double>(replica.steps * run.tokens_per_step);
}

double unexpected(const RunResult& run, const ReplicaResult& replica) {
  double sum = 0;
  for (size_t c = 0; c < replica.by_class.size(); ++c) {
    if (!run.class_planned[c]) sum += static_cast<double>(replica.by_class[c]);
  }
  return sum;
}

std::string letter(size_t i) { return std::string(1, static_cast<char>('A' + i)); }

std::string half_width(const Interval& interval, double scale, int decimals) {
  return std::isfinite(interval.half_width)
             ? fmt::format("{:.{}f}", scale * interval.half_width, decimals)
             : "-";
}

void add_row(TextTable& table, const RunDifference& d, const std::string& name, double scale,
             int decimals) {
  table.add_row({name, fmt::format("{:.{}f}", scale * d.a, decimals),
                 fmt::format("{:.{}f}", scale * d.b, decimals),
                 fmt::format("{:+.{}f}", scale * d.difference.mean, decimals),
                 half_width(d.difference, scale, decimals),
                 d.difference.excludes_zero() ? "" : "not told apart"});
}

std::string words(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string difference_text(const RunResult& a, const RunResult& b, const std::string& name) {
  const RunComparison c = compare_runs(a, b);
  const auto columns = [&](const char* first) {
    return std::vector<TextTable::Column>{{first},
                                          {"A", Align::kRight},
                                          {name, Align::kRight},
                                          {name + " - A", Align::kRight},
                                          {"+-", Align::kRight},
                                          {""}};
  };
  TextTable figures(columns("figure, mean of replicas"));
  add_row(figures, c.figures[0], "effective training time, %", 100, 3);
  add_row(figures, c.figures[1], "tokens a second, thousands", 1e-3, 1);
  add_row(figures, c.figures[2], "unexpected interruptions", 1, 1);
  TextTable terms(columns("% of the elapsed time"));
  for (const RunDifference& d : c.terms) {
    if (d.a != 0 || d.b != 0) add_row(terms, d, words(d.term), 100, 3);
  }
  TextTable days(columns("days for 1e12 tokens"));
  for (const RunDifference& d : c.days_a_trillion) {
    if (d.a != 0 || d.b != 0) add_row(days, d, words(d.term), 1, 3);
  }
  return fmt::format("\n{}\n{}{}", figures.text(), terms.text(),
                     c.days_a_trillion.empty() ? "" : '\n' + days.text());
}

Json difference_json(const std::vector<RunDifference>& differences) {
  Json out = Json::array();
  for (const RunDifference& d : differences) {
    Json j = {{"name", d.term}, {"a", d.a}, {"b", d.b}, {"difference", d.difference.mean}};
    j["half_width_95"] =
        std::isfinite(d.difference.half_width) ? Json(d.difference.half_width) : Json();
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace

RunComparison compare_runs(const RunResult& a, const RunResult& b) {
  HERDSIM_CHECK(!a.replicas.empty() && a.replicas.size() == b.replicas.size())
      << a.replicas.size() << " and " << b.replicas.size() << " replicas";
  RunComparison c;
  c.figures = {
      paired("effective_training_time", a, b,
             [](const RunResult&, const ReplicaResult& r) { return r.effective_training_time(); }),
      paired("tokens_per_second", a, b, pace),
      paired("unexpected_interruptions", a, b, unexpected)};
  for (size_t term = 0; term < kRunTerms; ++term) {
    c.terms.push_back(
        paired(kRunTermNames[term], a, b, [term](const RunResult&, const ReplicaResult& r) {
          return r.account[term].seconds() / r.horizon.seconds();
        }));
  }
  const auto trains = [](const RunResult& run) {
    return std::all_of(run.replicas.begin(), run.replicas.end(),
                       [](const ReplicaResult& r) { return r.steps > 0; });
  };
  if (trains(a) && trains(b)) {
    for (size_t term = 0; term < kRunTerms; ++term) {
      c.days_a_trillion.push_back(
          paired(kRunTermNames[term], a, b, [&](const RunResult& run, const ReplicaResult& r) {
            return days_a_trillion(run, r, r.account[term]);
          }));
    }
  }
  for (std::vector<RunDifference>* terms : {&c.terms, &c.days_a_trillion}) {
    std::stable_sort(terms->begin(), terms->end(), [](const auto& x, const auto& y) {
      return std::abs(x.difference.mean) > std::abs(y.difference.mean);
    });
  }
  if (!c.days_a_trillion.empty()) {
    c.days_a_trillion.push_back(
        paired("all", a, b, [](const RunResult& run, const ReplicaResult& r) {
          return days_a_trillion(run, r, r.horizon);
        }));
  }
  return c;
}

std::string runs_comparison_table(std::span<const RunResult> runs) {
  std::string text;
  TextTable table({{""},
                   {"GPUs", Align::kRight},
                   {"days", Align::kRight},
                   {"step s", Align::kRight},
                   {"ETT %", Align::kRight},
                   {"p05", Align::kRight},
                   {"p95", Align::kRight},
                   {"failures", Align::kRight},
                   {"tokens/s", Align::kRight}});
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunResult& r = runs[i];
    text += fmt::format("{}  {}\n", letter(i), r.scenario);
    table.add_row(
        {letter(i), count_text(r.gpus), fmt::format("{:.1f}", r.mean_horizon_seconds() / 86'400),
         fmt::format("{:.3f}", r.nominal_step.seconds()),
         fmt::format("{:.2f}", 100 * r.effective_training_time()),
         fmt::format("{:.2f}", 100 * r.effective_training_time_quantile(0.05)),
         fmt::format("{:.2f}", 100 * r.effective_training_time_quantile(0.95)),
         fmt::format("{:.1f}", r.unexpected()), fmt::format("{:.4g}", r.tokens_per_second())});
  }
  text += '\n' + table.text();
  for (size_t i = 1; i < runs.size(); ++i) {
    text += difference_text(runs[0], runs[i], letter(i));
  }
  return text + fmt::format(
                    "+- is half the 95 % interval of the difference over {} pairs of "
                    "replicas with the same failures\n",
                    runs[0].replicas.size());
}

std::string runs_comparison_json(std::span<const RunResult> runs) {
  Json scenarios = Json::array();
  for (const RunResult& r : runs) {
    scenarios.push_back({{"scenario", r.scenario},
                         {"gpus", r.gpus},
                         {"replicas", r.replicas.size()},
                         {"step_time_s", r.nominal_step.seconds()},
                         {"effective_training_time", r.effective_training_time()},
                         {"tokens_per_second", r.tokens_per_second()},
                         {"unexpected_interruptions", r.unexpected()},
                         {"fingerprint", r.fingerprint()}});
  }
  Json whole = {{"runs", std::move(scenarios)}};
  const auto differences = [&](size_t i) {
    const RunComparison c = compare_runs(runs[0], runs[i]);
    return Json{{"differences", difference_json(c.figures)},
                {"account_differences", difference_json(c.terms)},
                {"days_a_trillion_tokens", difference_json(c.days_a_trillion)}};
  };
  if (runs.size() == 2) {
    whole.update(differences(1));
  } else {
    whole["from_the_first"] = Json::array();
    for (size_t i = 1; i < runs.size(); ++i) {
      Json from_first = differences(i);
      from_first["scenario"] = runs[i].scenario;
      whole["from_the_first"].push_back(std::move(from_first));
    }
  }
  return whole.dump(2) + '\n';
}

}  // namespace herdsim

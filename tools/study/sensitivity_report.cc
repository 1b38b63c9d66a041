#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "tools/study/sensitivity.h"

namespace herdsim {
namespace {

// What a bar changes, as the reports name and scale it.
struct Shown {
  std::string_view figure, title;
  double (*value)(const Outlook&);
  double scale;
  int decimals;
};
constexpr Shown kShown[] = {
    {"mfu", "MFU points", [](const Outlook& o) { return o.mfu; }, 100, 2},
    {"effective_training_time", "ETT points",
     [](const Outlook& o) { return o.effective_training_time.value_or(0); }, 100, 2},
    {"tokens_per_second", "tokens/s", [](const Outlook& o) { return o.tokens_per_second; }, 1, 0},
};

bool is_shown(const Shown& shown, const Sensitivity& s) {
  return shown.figure != "effective_training_time" || s.base.effective_training_time.has_value();
}

// "-0.90 to +0.44": from the low end of the input to the high one.
std::string change(const Shown& shown, const Sensitivity& s, const TornadoBar& bar) {
  const auto at = [&](const std::optional<Outlook>& end) {
    if (!end) return std::string("-");
    const double by = shown.scale * (shown.value(*end) - shown.value(s.base));
    const std::string text = fmt::format("{:+.{}f}", by, shown.decimals);
    return text.find_first_of("123456789") == std::string::npos ? std::string("0") : text;
  };
  return at(bar.low) + " to " + at(bar.high);
}

nlohmann::ordered_json figures(const std::optional<Outlook>& outlook, const Sensitivity& s) {
  if (!outlook) return nullptr;
  nlohmann::ordered_json j = {{"step_time_s", outlook->step_time_s}};
  for (const Shown& shown : kShown) {
    if (is_shown(shown, s)) j[std::string(shown.figure)] = shown.value(*outlook);
  }
  return j;
}

}  // namespace

std::vector<TornadoRow> tornado_rows(const Sensitivity& s) {
  std::vector<TornadoRow> rows;
  for (const TornadoBar& bar : s.bars) {
    for (const Shown& shown : kShown) {
      if (!is_shown(shown, s)) continue;
      const auto at = [&](const std::optional<Outlook>& end) {
        return end ? std::optional(shown.value(*end)) : std::nullopt;
      };
      rows.push_back({.input = bar.input.path,
                      .low = bar.input.low,
                      .high = bar.input.high,
                      .evidence = bar.input.evidence,
                      .source = bar.input.source,
                      .metric = std::string(shown.figure),
                      .value = shown.value(s.base),
                      .value_low = at(bar.low),
                      .value_high = at(bar.high)});
    }
  }
  return rows;
}

std::string tornado_table(const Sensitivity& s) {
  std::vector<TextTable::Column> columns = {{"input"}, {"value", Align::kRight}, {"range"}};
  for (const Shown& shown : kShown) {
    if (is_shown(shown, s) && shown.figure != "tokens_per_second") {
      columns.push_back({std::string(shown.title), Align::kRight});
    }
  }
  columns.push_back({"basis"});
  TextTable table(std::move(columns));
  std::string still, problems;
  for (const TornadoBar& bar : s.bars) {
    if (!bar.problem.empty()) problems += fmt::format("{}: {}\n", bar.input.path, bar.problem);
    if (s.swing(bar) == 0 && bar.problem.empty()) {
      still += (still.empty() ? "" : ", ") + bar.input.path;
      continue;
    }
    std::vector<std::string> row = {bar.input.path, bar.input.value,
                                    bar.input.low + " to " + bar.input.high};
    for (const Shown& shown : kShown) {
      if (is_shown(shown, s) && shown.figure != "tokens_per_second") {
        row.push_back(change(shown, s, bar));
      }
    }
    row.push_back(bar.input.evidence);
    table.add_row(std::move(row));
  }
  const PaceRange range = pace_range(s);
  std::string text = fmt::format("MFU {:.2f} %", 100 * s.base.mfu);
  if (s.base.effective_training_time) {
    text +=
        fmt::format(", effective training time {:.2f} %", 100 * *s.base.effective_training_time);
  }
  text += fmt::format("; each input alone at both ends of its range\n\n{}", table.text());
  if (!still.empty()) text += "change nothing here: " + still + '\n';
  text += problems;
  return text + fmt::format(
                    "pace of training, all together: {:+.1f} to {:+.1f} % (roots of sums of "
                    "squares)\n",
                    100 * (range.slowest - 1), 100 * (range.fastest - 1));
}

std::string tornado_json(const Sensitivity& s) {
  nlohmann::ordered_json bars = nlohmann::ordered_json::array();
  for (const TornadoBar& bar : s.bars) {
    nlohmann::ordered_json j = {{"input", bar.input.path},        {"value", bar.input.value},
                                {"low", bar.input.low},           {"high", bar.input.high},
                                {"evidence", bar.input.evidence}, {"source", bar.input.source},
                                {"swing", s.swing(bar)},          {"at_low", figures(bar.low, s)},
                                {"at_high", figures(bar.high, s)}};
    if (!bar.problem.empty()) j["problem"] = bar.problem;
    bars.push_back(std::move(j));
  }
  const PaceRange range = pace_range(s);
  return nlohmann::ordered_json{{"base", figures(s.base, s)},
                                {"pace_slowest", range.slowest},
                                {"pace_fastest", range.fastest},
                                {"inputs", std::move(bars)}}
             .dump(2) +
         '\n';
}

std::string tornado_csv(const Sensitivity& s) {
  std::string text = "input,low,high,evidence,metric,base,at_low,at_high,source\n";
  const auto at = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  for (const TornadoRow& row : tornado_rows(s)) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", row.input, row.low, row.high, row.evidence,
                        row.metric, row.value, at(row.value_low), at(row.value_high),
                        csv_field(row.source));
  }
  return text;
}

}  // namespace herdsim

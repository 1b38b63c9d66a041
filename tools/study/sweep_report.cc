#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/text.h"
#include "tools/study/sweep.h"

namespace herdsim {
namespace {

// A figure as the table shows it; the other formats have all of them under their own names.
struct TableColumn {
  std::string_view figure, title;
  double scale;
  int decimals;
};
constexpr TableColumn kColumns[] = {
    {"step_time_s", "step s", 1, 3},
    {"mfu", "MFU %", 100, 2},
    {"model_tflops_per_gpu", "TFLOP/s", 1, 1},
    {"bubble_fraction", "bubble %", 100, 2},
    {"peak_memory_bytes", "peak GB", 1e-9, 1},
    {"run.effective_training_time", "ETT %", 100, 2},
    {"run.effective_training_time_p05", "p05", 100, 2},
    {"run.effective_training_time_p95", "p95", 100, 2},
    {"run.unexpected_interruptions", "failures", 1, 1},
};

std::optional<double> figure_of(const SweepRow& row, std::string_view name) {
  for (const Metric& metric : row.stored.figures) {
    if (metric.name == name) return metric.value;
  }
  return std::nullopt;
}

// Of all rows, in the order in which they first appear.
std::vector<std::string> figure_names(const SweepResult& result) {
  std::vector<std::string> names;
  for (const SweepRow& row : result.rows) {
    for (const Metric& metric : row.stored.figures) {
      if (std::find(names.begin(), names.end(), metric.name) == names.end()) {
        names.push_back(metric.name);
      }
    }
  }
  return names;
}

// "parallel.tp" is "tp" where no other axis ends so.
std::string short_path(const SweepResult& result, const std::string& path) {
  const std::string last = path.substr(path.rfind('.') + 1);
  const auto ends_so = [&](const std::string& other) {
    return other.substr(other.rfind('.') + 1) == last;
  };
  return std::count_if(result.paths.begin(), result.paths.end(), ends_so) == 1 ? last : path;
}

std::vector<TableColumn> shown_columns(const SweepResult& result) {
  std::vector<TableColumn> shown;
  for (const TableColumn& column : kColumns) {
    const bool some = std::any_of(result.rows.begin(), result.rows.end(), [&](const SweepRow& row) {
      return figure_of(row, column.figure).has_value();
    });
    if (some) shown.push_back(column);
  }
  return shown;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::vector<std::string> table_cells(const SweepRow& row, const std::vector<TableColumn>& columns) {
  std::vector<std::string> cells = row.values;
  if (!row.stored.skipped_because.empty()) return cells;
  for (const TableColumn& column : columns) {
    const auto value = figure_of(row, column.figure);
    cells.push_back(value ? fmt::format("{:.{}f}", *value * column.scale, column.decimals) : "-");
  }
  return cells;
}

// One line a row, whatever reads it.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? std::string("; ") : std::string(1, c);
  return line;
}

// A number where the text is one.
nlohmann::ordered_json json_value(const std::string& text) {
  auto value = nlohmann::ordered_json::parse(text, nullptr, false);
  return value.is_number() ? value : nlohmann::ordered_json(text);
}

}  // namespace

std::string sweep_table(const SweepResult& result) {
  const std::vector<TableColumn> columns = shown_columns(result);
  std::vector<std::vector<std::string>> lines(1);
  for (const std::string& path : result.paths) lines[0].push_back(short_path(result, path));
  for (const TableColumn& column : columns) lines[0].emplace_back(column.title);
  for (const SweepRow& row : result.rows) lines.push_back(table_cells(row, columns));
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (size_t l = 0; l < lines.size(); ++l) {
    for (size_t i = 0; i < lines[l].size(); ++i) {
      text += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", lines[l][i], widths[i]);
    }
    if (l > 0) {
      const SweepRow& row = result.rows[l - 1];
      if (!row.stored.skipped_because.empty()) {
        text += "  skipped: " + first_line(row.stored.skipped_because);
      } else if (figure_of(row, "fits") == 0.0) {
        text += "  does not fit";
      }
    }
    text += '\n';
  }
  return text + fmt::format("{} points: {} computed now, {} found in the database, {} skipped\n",
                            result.rows.size(), result.computed, result.found, result.skipped);
}

std::string sweep_json(const SweepResult& result) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const SweepRow& row : result.rows) {
    nlohmann::ordered_json values, point;
    for (size_t i = 0; i < row.values.size(); ++i) {
      values[result.paths[i]] = json_value(row.values[i]);
    }
    point["values"] = values;
    for (const Metric& metric : row.stored.figures) {
      if (metric.name == "fits") {
        point[metric.name] = metric.value != 0;
      } else {
        point[metric.name] = metric.value;
      }
    }
    point["fingerprint"] = row.stored.fingerprint;
    if (!row.stored.skipped_because.empty()) point["skipped_because"] = row.stored.skipped_because;
    points.push_back(std::move(point));
  }
  nlohmann::ordered_json whole;
  whole["axes"] = result.paths;
  whole["computed"] = result.computed;
  whole["found"] = result.found;
  whole["skipped"] = result.skipped;
  whole["points"] = std::move(points);
  return whole.dump(2) + '\n';
}

std::string sweep_csv(const SweepResult& result) {
  const std::vector<std::string> names = figure_names(result);
  std::string text;
  for (const std::string& path : result.paths) text += csv_field(path) + ',';
  for (const std::string& name : names) text += name + ',';
  text += "fingerprint,skipped_because\n";
  for (const SweepRow& row : result.rows) {
    for (const std::string& value : row.values) text += csv_field(value) + ',';
    for (const std::string& name : names) {
      const auto value = figure_of(row, name);
      text += (value ? fmt::format("{}", *value) : "") + ',';
    }
    text += row.stored.fingerprint + ',' + csv_field(one_line(row.stored.skipped_because)) + '\n';
  }
  return text;
}

}  // namespace herdsim

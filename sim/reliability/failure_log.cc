#include "sim/reliability/failure_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/read_file.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/timestamp.h"

namespace herdsim {
namespace {

constexpr size_t kMostFaults = 20;

// The comma that ends the first cell; one in quotes does not.
size_t end_of_cell(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (line[i] == ',' && !quoted) return i;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t comma = end_of_cell(line);
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"' || cell.back() == '\r'))
      cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

struct Header {
  size_t time = 0, name = 0;
  double seconds_per_unit = 0;  // 0: timestamps

  // Seconds; none for what is no time, or one that no log reaches.
  std::optional<double> time_of(std::string_view cell) const {
    constexpr double kLatest = 1e12;
    if (seconds_per_unit == 0) return seconds_of_timestamp(cell);
    const auto number = number_of(cell);
    if (!number || std::abs(*number) * seconds_per_unit > kLatest) return std::nullopt;
    return *number * seconds_per_unit;
  }
};

constexpr std::string_view kTimeColumns =
    "a column class and one of time_s, time_h, time_d or time (2024-05-01T06:30:00Z)";

Header header_of(std::string_view line, const std::string& file) {
  const auto cells = cells_of(line);
  std::optional<size_t> time, name;
  Header header;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == "class") name = i;
    for (const auto& [column, unit] : {std::pair<std::string_view, double>{"time", 0},
                                       {"time_s", 1},
                                       {"time_h", 3600},
                                       {"time_d", 86'400}}) {
      if (cells[i] != column) continue;
      time = i;
      header.seconds_per_unit = unit;
    }
  }
  if (!time || !name) {
    Faults faults;
    faults.add({.file = file,
                .line = 1,
                .column = 1,
                .field = "header",
                .problem = fmt::format("\"{}\"", line),
                .allowed = std::string(kTimeColumns)});
    faults.throw_if_any();
  }
  header.time = *time;
  header.name = *name;
  return header;
}

// Failure times by class, in order of first appearance.
struct Series {
  std::string name;
  std::vector<double> times;
};

void add_time(std::vector<Series>& series, std::string_view name, double time) {
  const auto place =
      std::find_if(series.begin(), series.end(), [&](const Series& s) { return s.name == name; });
  if (place != series.end()) return place->times.push_back(time);
  series.push_back({.name = std::string(name), .times = {time}});
}

std::vector<std::string> class_names() {
  std::vector<std::string> names;
  for (const FailureClass& row : failure_classes()) names.emplace_back(row.name);
  return names;
}

std::vector<Series> read_rows(std::string_view text, const Header& header,
                              const std::string& file) {
  std::vector<Series> series;
  Faults faults;
  const auto names = class_names();
  int line_number = 1;
  double latest = -std::numeric_limits<double>::infinity();
  std::string_view latest_cell;
  int latest_line = 0;
  while (!text.empty() && faults.list().size() < kMostFaults) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++line_number;
    const auto cells = cells_of(line);
    if (cells.size() == 1 && cells[0].empty()) continue;
    const auto fault = [&](std::string field, std::string problem, std::string allowed,
                           std::string nearest) {
      faults.add({.file = file,
                  .line = line_number,
                  .column = 1,
                  .field = std::move(field),
                  .problem = std::move(problem),
                  .allowed = std::move(allowed),
                  .nearest = std::move(nearest)});
    };
    if (cells.size() <= std::max(header.time, header.name)) {
      fault("row", fmt::format("{} cells", cells.size()), "as many as the header", "");
      continue;
    }
    const std::string_view cell = cells[header.time];
    const auto time = header.time_of(cell);
    const std::string name(cells[header.name]);
    if (!time) {
      const bool is_stamp = header.seconds_per_unit == 0;
      fault("time", fmt::format("\"{}\" is not a {}", cell, is_stamp ? "time of day" : "number"),
            is_stamp ? "2024-05-01T06:30:00Z, +02:00 for Z" : "a number up to 1e12 s", "");
    } else if (*time < latest) {
      fault("time", fmt::format("{} is before {} of line {}", cell, latest_cell, latest_line),
            "rows in order of time", "");
    } else {
      latest = *time;
      latest_cell = cell;
      latest_line = line_number;
    }
    if (find_failure_class(name) == nullptr) {
      fault("class", fmt::format("there is no \"{}\"", name),
            fmt::format("{}", fmt::join(names, ", ")), nearest_name(name, names));
    } else if (time) {
      add_time(series, name, *time);
    }
  }
  faults.throw_if_any();
  return series;
}

LoggedClass logged(const Series& series, int64_t gpus) {
  LoggedClass result{.name = series.name};
  for (size_t i = 1; i < series.times.size(); ++i)
    result.gaps_seconds.push_back(series.times[i] - series.times[i - 1]);
  std::sort(result.gaps_seconds.begin(), result.gaps_seconds.end());
  result.mean_gap_seconds = (series.times.back() - series.times.front()) /
                            static_cast<double>(result.gaps_seconds.size());
  const int64_t units = FailureDomains{.gpus = gpus}.units(find_failure_class(series.name)->per);
  if (result.mean_gap_seconds > 0)
    result.rate_per_hour = 3600 / result.mean_gap_seconds / static_cast<double>(units);
  return result;
}

}  // namespace

FailureLog parse_failure_log(std::string_view text, const std::string& file, int64_t gpus) {
  // Spreadsheets begin their files with a byte order mark.
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const size_t end = text.find('\n');
  const Header header = header_of(text.substr(0, end), file);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  FailureLog log;
  for (const Series& series : read_rows(text, header, file)) {
    if (series.times.size() < 2 || series.times.front() == series.times.back()) {
      log.warnings.push_back(fmt::format(
          "{}: {}: fewer than two failures at different times say nothing about gaps; the "
          "class keeps its own law",
          file, series.name));
      continue;
    }
    log.classes.push_back(logged(series, gpus));
  }
  if (log.classes.empty()) {
    Faults faults;
    faults.add({.file = file,
                .line = 1,
                .column = 1,
                .field = "rows",
                .problem = "no class failed twice",
                .allowed = "two failures or more of one class"});
    faults.throw_if_any();
  }
  return log;
}

}  // namespace herdsim

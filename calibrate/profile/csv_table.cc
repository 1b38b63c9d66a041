#include "calibrate/profile/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/read_file.h"

namespace herdsim {
namespace {

struct Record {
  std::vector<std::string> cells;
  bool closed = true;  // no open quote at the end
};

// Takes one record off the front of `text` and counts the lines it spans.
Record take_record(std::string_view& text, int& lines) {
  Record record;
  std::string cell;
  bool quoted = false;
  size_t i = 0;
  lines = 1;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
        cell += '"';
        ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        lines += c == '\n' ? 1 : 0;
        cell += c;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      record.cells.push_back(std::exchange(cell, ""));
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      cell += c;
    }
  }
  record.cells.push_back(std::move(cell));
  record.closed = !quoted;
  text.remove_prefix(std::min(i + 1, text.size()));
  return record;
}

}  // namespace

void CsvTable::append_header_faults(int line, Faults& faults) const {
  for (size_t c = 0; c < header_.size(); ++c) {
    const auto first = std::find(header_.begin(), header_.end(), header_[c]);
    if (header_[c].empty() || static_cast<size_t>(first - header_.begin()) == c) continue;
    faults.add({.file = file_,
                .line = line,
                .column = 1,
                .field = header_[c].substr(0, 60),
                .problem = "is the name of two columns",
                .allowed = "every column once"});
  }
}

CsvTable::CsvTable(std::string_view text, std::string file) : file_(std::move(file)) {
  Faults faults;
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    const int line = static_cast<int>(lines) + 1;
    faults.add({.file = file_, .line = line, .column = 1, .problem = "is not text", .allowed = "CSV"});
    faults.throw_if_any();
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  int line = 1, lines = 0;
  while (!text.empty()) {
    if (text.front() == '#' || text.front() == '\n' || text.front() == '\r') {
      const size_t end = text.find('\n');
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      ++line;
      continue;
    }
    Record record = take_record(text, lines);
    if (!record.closed) {
      faults.add({.file = file_, .line = line, .column = 1, .problem = "a quote is never closed"});
    } else if (header_.empty()) {
      header_ = std::move(record.cells);
      append_header_faults(line, faults);
    } else if (record.cells.size() != header_.size()) {
      faults.add({.file = file_,
                  .line = line,
                  .column = 1,
                  .problem = std::to_string(record.cells.size()) + " cells",
                  .allowed = std::to_string(header_.size()) + ", as in the header"});
    } else {
      rows_.push_back({line, std::move(record.cells)});
    }
    line += lines;
  }
  if (header_.empty()) faults.add({.file = file_, .problem = "has no header line"});
  faults.throw_if_any();
}

std::optional<size_t> CsvTable::column(std::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  if (found == header_.end()) return std::nullopt;
  return static_cast<size_t>(found - header_.begin());
}

double CsvTable::positive_number(size_t row, size_t column, Faults& faults) const {
  const std::string& text = cell(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0 &&
      std::isfinite(value)) {
    return value;
  }
  fault(row, column, "\"" + text + "\" is no positive number", "above 0", faults);
  return 0;
}

void CsvTable::fault(size_t row, size_t column, std::string problem, std::string allowed,
                     Faults& faults) const {
  faults.add({.file = file_,
              .line = rows_[row].line,
              .column = 1,
              .field = header_[column],
              .problem = std::move(problem),
              .allowed = std::move(allowed)});
}

}  // namespace herdsim

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "calibrate/nccl_tests/nccl_tests_parts.h"

namespace herdsim {
namespace {

bool is_time(std::string_view word) { return word == "time" || word == "cputime"; }

bool starts_with_letter(std::string_view word) {
  return !word.empty() && std::isalpha(static_cast<unsigned char>(word.front())) != 0;
}

bool not_checked(std::string_view cell) { return cell == "N/A" || cell == "n/a"; }

bool is_exponent_form(std::string_view cell) { return cell.find('e') != std::string_view::npos; }

// Printed bandwidths have two decimals at most and times three digits at least; exponent forms
// have two.
bool agree(Bytes size, const NcclTestsHalf& half) {
  const double rate = static_cast<double>(size.count()) / half.microseconds * 1e-3;
  return std::abs(rate - half.algorithm_bandwidth) <= 0.006 + 0.06 * rate;
}

// One half from its cells; nullopt where a cell is not what its column holds.
std::optional<NcclTestsHalf> read_half(Bytes size, const std::string_view* cells,
                                       const NcclTestsColumns& columns) {
  NcclTestsHalf half;
  bool exponent = false;
  for (size_t i = 0; i < columns.half.size(); ++i) {
    const std::string& name = columns.half[i];
    const std::optional<double> value = plain_number(cells[i]);
    if (name == "#wrong" || name == "error" || name == "res") {
      if (!value && !not_checked(cells[i])) return std::nullopt;
      half.wrong = value;
      continue;
    }
    if (is_time(name)) {
      if (!value || *value < 0) return std::nullopt;
      half.microseconds = *value * columns.time_scale;
      exponent = is_exponent_form(cells[i]);
    } else if (name == "algbw" || name == "busbw") {
      if (!value || *value < 0) return std::nullopt;
      (name == "algbw" ? half.algorithm_bandwidth : half.bus_bandwidth) = *value;
    }
  }
  if (half.microseconds <= 0) return std::nullopt;
  if (size > Bytes() && !agree(size, half)) return std::nullopt;
  // "1.2e+07" has two digits; the bandwidth beside it has more.
  if (exponent && half.algorithm_bandwidth >= 1) {
    half.microseconds = static_cast<double>(size.count()) / half.algorithm_bandwidth * 1e-3;
  }
  return half;
}

// Lead cells under the first `lead.size() - missing` names that are not left empty. Which are empty
// is told by what the cells are: a reduction is a word, a root a whole number.
bool read_lead(const std::string_view* cells, size_t count, const std::vector<std::string>& names,
               NcclTestsRow& row) {
  size_t next = 0;
  for (const std::string& name : names) {
    if (next == count) break;
    if (name == "root") {
      if (!whole_number(cells[next])) continue;
      ++next;
    } else {
      if (!starts_with_letter(cells[next])) continue;
      if (name == "redop" || name == "op") row.reduction = cells[next];
      ++next;
    }
  }
  return next == count;
}

}  // namespace

std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double NcclTestsRow::seconds() const {
  const double a = out_of_place ? out_of_place->microseconds : 0;
  const double b = in_place ? in_place->microseconds : 0;
  if (a <= 0 || b <= 0) return 1e-6 * std::max(a, b);
  return 1e-6 * (std::max(a, b) > 1.2 * std::min(a, b) ? std::min(a, b) : 0.5 * (a + b));
}

double NcclTestsRow::best_bus_bandwidth() const {
  return std::max(out_of_place ? out_of_place->bus_bandwidth : 0.0,
                  in_place ? in_place->bus_bandwidth : 0.0);
}

std::optional<NcclTestsColumns> nccl_tests_columns(const std::vector<std::string_view>& words) {
  const auto has = [&](std::string_view a, std::string_view b) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view w) { return w == a || w == b; });
  };
  if (!has("size", "bytes") || !has("time", "cputime") || !has("algbw", "algbw") ||
      !has("busbw", "busbw")) {
    return std::nullopt;
  }
  NcclTestsColumns columns;
  const auto type = std::find(words.begin(), words.end(), "type");
  const auto first = std::find_if(words.begin(), words.end(), is_time);
  if (type == words.end() || type > first) return std::nullopt;
  const auto second = std::find_if(first + 1, words.end(), is_time);
  columns.lead.assign(type + 1, first);
  columns.halves = second == words.end() ? 1 : 2;
  const auto half_size = columns.halves == 2 ? second - first : words.end() - first;
  columns.half.assign(first, first + half_size);
  // "# wrong" pasted apart.
  std::erase(columns.half, "#");
  for (std::string& name : columns.half) {
    if (name == "wrong") name = "#wrong";
  }
  if (columns.halves == 2) {
    const auto tail = std::min(words.end(), second + half_size);
    // A time stamp is two cells: a day and a time of day.
    for (auto word = tail; word != words.end(); ++word) {
      columns.tail_cells += *word == "timestamp" ? 2 : 1;
    }
  }
  // Only the first generation calls sizes "bytes", and it prints milliseconds.
  if (std::find(words.begin(), words.end(), "bytes") != words.end()) columns.time_scale = 1000;
  return columns;
}

RowReading read_nccl_tests_row(const std::vector<std::string_view>& cells,
                               const NcclTestsColumns& columns) {
  NcclTestsRow row;
  row.size = Bytes(*whole_number(cells[0]));
  row.count = *whole_number(cells[1]);
  row.type = cells[2];
  const size_t rest = cells.size() - 3;
  const size_t body = columns.halves * columns.half.size();
  bool long_enough = false;
  for (size_t missing = 0; missing <= columns.lead.size(); ++missing) {
    const size_t lead = columns.lead.size() - missing;
    if (rest < lead + body) continue;
    long_enough = true;
    NcclTestsRow reading = row;
    if (!read_lead(cells.data() + 3, lead, columns.lead, reading)) continue;
    const std::string_view* half = cells.data() + 3 + lead;
    reading.out_of_place = read_half(row.size, half, columns);
    if (!reading.out_of_place) continue;
    if (columns.halves == 2) {
      reading.in_place = read_half(row.size, half + columns.half.size(), columns);
      if (!reading.in_place) continue;
    }
    return {reading, ""};
  }
  return {std::nullopt, long_enough ? "its cells do not fit the columns, or time and algbw disagree"
                                    : "is cut short"};
}

std::string nccl_version_text(int64_t code) {
  if (code <= 0) return "";
  // Two digits for the minor version from 2.9 on.
  return code < 10000 ? fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100)
                      : fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

}  // namespace herdsim

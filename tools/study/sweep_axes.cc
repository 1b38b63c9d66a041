#include "tools/study/sweep_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace herdsim {
namespace {

constexpr double kMostValues = 1'000'000;
// A last value that a step misses by less than this share of a step was meant: 0:1:0.1.
constexpr double kSlack = 1e-9;

std::string shortened(std::string_view text) { return std::string(text.substr(0, 100)); }

void add_fault(Faults& faults, std::string_view axis, std::string problem,
               std::string allowed = std::string(kAxisForm)) {
  faults.add({.file = "--axis " + shortened(axis),
              .problem = std::move(problem),
              .allowed = std::move(allowed)});
}

// At commas outside brackets and quotes. Empty where those do not close.
std::optional<std::vector<std::string_view>> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  std::string closers;
  char quote = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      closers += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (closers.empty() || closers.back() != c) return std::nullopt;
      closers.pop_back();
    } else if (c == ',' && closers.empty()) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (quote != 0 || !closers.empty()) return std::nullopt;
  parts.push_back(text.substr(begin));
  return parts;
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

// Twelve digits: what was written, without the residue of adding steps in binary.
std::string decimal(double value) { return fmt::format("{:.12g}", value == 0 ? 0.0 : value); }

// The three numbers of a range, or empty for a plain value.
template <class Number>
std::optional<std::array<Number, 3>> range_numbers(std::string_view text, std::string_view first,
                                                   std::string_view second) {
  const size_t a = text.find(first);
  if (a == std::string_view::npos) return std::nullopt;
  const size_t b = text.find(second, a + first.size());
  if (b == std::string_view::npos) return std::nullopt;
  const auto begin = number_of<Number>(text.substr(0, a));
  const auto end = number_of<Number>(text.substr(a + first.size(), b - a - first.size()));
  const auto step = number_of<Number>(text.substr(b + second.size()));
  if (!begin || !end || !step) return std::nullopt;
  return std::array<Number, 3>{*begin, *end, *step};
}

// Why a range has no values or too many; "" where it is sound.
std::string range_problem(double steps, bool advances) {
  if (!advances) return "does not advance";
  if (steps < 0) return "holds no value";
  if (steps >= kMostValues) return "holds more than a million values";
  return "";
}

class AxisParser {
 public:
  AxisParser(std::string_view text, Faults& faults) : text_(text), faults_(faults) {}

  SweepAxis parse() {
    const size_t equals = text_.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      fault("is not an axis");
      return axis_;
    }
    const auto paths = split_list(text_.substr(0, equals));
    if (!paths) {
      fault("has a bracket or a quote that does not close");
      return axis_;
    }
    for (const std::string_view path : *paths) {
      if (path.empty()) fault("has an empty path");
      axis_.paths.emplace_back(path);
    }
    const std::string_view list = text_.substr(equals + 1);
    const auto items = split_list(list);
    if (list.empty() || !items) {
      fault(list.empty() ? "has no value" : "has a bracket or a quote that does not close");
      return axis_;
    }
    for (const std::string_view item : *items) add_item(item);
    reject_repeated_values();
    return axis_;
  }

 private:
  void fault(std::string problem) { add_fault(faults_, text_, std::move(problem)); }

  void add_item(std::string_view item) {
    if (item.empty()) return fault("has an empty value");
    if (axis_.paths.size() > 1) return add_tuple(item);
    if (const auto r = range_numbers<int64_t>(item, ":", ":")) return add_integers(*r, item);
    if (const auto r = range_numbers<double>(item, ":", ":")) return add_steps(*r, item);
    if (const auto r = range_numbers<double>(item, "..", "*")) return add_factors(*r, item);
    axis_.values.push_back({std::string(item)});
  }

  void add_tuple(std::string_view item) {
    if (item.size() < 2 || item.front() != '(' || item.back() != ')') {
      return fault(fmt::format("ties {} fields, and \"{}\" is no tuple", axis_.paths.size(),
                               shortened(item)));
    }
    const auto parts = split_list(item.substr(1, item.size() - 2));
    if (!parts || parts->size() != axis_.paths.size()) {
      return fault(fmt::format("ties {} fields, and {} has another number of values",
                               axis_.paths.size(), shortened(item)));
    }
    axis_.values.emplace_back(parts->begin(), parts->end());
  }

  bool sound(double steps, bool advances, std::string_view item) {
    const std::string problem = range_problem(steps, advances);
    if (!problem.empty()) fault(fmt::format("range {} {}", shortened(item), problem));
    return problem.empty();
  }

  void add_integers(const std::array<int64_t, 3>& range, std::string_view item) {
    const auto [first, last, step] = range;
    const double steps = (static_cast<double>(last) - static_cast<double>(first)) /
                         static_cast<double>(step == 0 ? 1 : step);
    if (!sound(steps, step != 0, item)) return;
    for (int64_t i = 0; i <= static_cast<int64_t>(steps); ++i) {
      axis_.values.push_back({std::to_string(first + i * step)});
    }
  }

  void add_steps(const std::array<double, 3>& range, std::string_view item) {
    const auto [first, last, step] = range;
    const double steps = (last - first) / (step == 0 ? 1 : step) + kSlack;
    if (!sound(last == first ? 0 : steps, step != 0, item)) return;
    for (int64_t i = 0; i <= static_cast<int64_t>(steps); ++i) {
      axis_.values.push_back({decimal(first + static_cast<double>(i) * step)});
    }
  }

  void add_factors(const std::array<double, 3>& range, std::string_view item) {
    const auto [first, last, factor] = range;
    const bool advances = first > 0 && last > 0 && factor > 0 && factor != 1;
    const double steps = advances ? std::log(last / first) / std::log(factor) + kSlack : 0;
    if (!sound(steps, advances, item)) return;
    for (int64_t i = 0; i <= static_cast<int64_t>(steps); ++i) {
      axis_.values.push_back({decimal(first * std::pow(factor, static_cast<double>(i)))});
    }
  }

  // A point would have two places in the grid and one in the database.
  void reject_repeated_values() {
    std::vector<std::vector<std::string>> sorted = axis_.values;
    std::sort(sorted.begin(), sorted.end());
    const auto twin = std::adjacent_find(sorted.begin(), sorted.end());
    if (twin != sorted.end()) {
      fault(fmt::format("has the value {} twice",
                        shortened(fmt::format("{}", fmt::join(*twin, ",")))));
    }
  }

  std::string_view text_;
  Faults& faults_;
  SweepAxis axis_;
};

}  // namespace

std::vector<SweepAxis> parse_axes(const std::vector<std::string>& texts) {
  Faults faults;
  if (texts.empty())
    faults.add({.field = "--axis",
                .problem = "a sweep has at least one axis",
                .allowed = std::string(kAxisForm)});
  std::vector<SweepAxis> axes;
  std::vector<std::string> seen;
  for (const std::string& text : texts) {
    axes.push_back(AxisParser(text, faults).parse());
    for (const std::string& path : axes.back().paths) {
      if (std::find(seen.begin(), seen.end(), path) != seen.end()) {
        add_fault(faults, text, fmt::format("{} is already on an axis", shortened(path)),
                  "every field once");
      }
      seen.push_back(path);
    }
  }
  faults.throw_if_any();
  return axes;
}

SweepGrid::SweepGrid(std::vector<SweepAxis> axes) : axes_(std::move(axes)) {
  for (const SweepAxis& axis : axes_) {
    const auto length = static_cast<int64_t>(axis.values.size());
    HERDSIM_CHECK(length > 0) << "an axis has values";
    if (size_ > kMostPoints / length) {
      throw SpecError({{.field = "--axis",
                        .problem = "the grid is too large",
                        .allowed = fmt::format("up to {} points", kMostPoints)}});
    }
    size_ *= length;
  }
}

std::vector<std::string> SweepGrid::paths() const {
  std::vector<std::string> paths;
  for (const SweepAxis& axis : axes_)
    paths.insert(paths.end(), axis.paths.begin(), axis.paths.end());
  return paths;
}

std::vector<std::string> SweepGrid::values(int64_t point) const {
  int64_t left = size_;
  std::vector<std::string> values;
  for (const SweepAxis& axis : axes_) {
    left /= static_cast<int64_t>(axis.values.size());
    const std::vector<std::string>& step = axis.values[static_cast<size_t>(point / left)];
    point %= left;
    values.insert(values.end(), step.begin(), step.end());
  }
  return values;
}

std::vector<std::string> SweepGrid::sets(int64_t point) const {
  std::vector<std::string> sets = paths();
  const std::vector<std::string> of_point = values(point);
  for (size_t i = 0; i < sets.size(); ++i) sets[i] += '=' + of_point[i];
  return sets;
}

std::string SweepGrid::label(int64_t point) const {
  return fmt::format("{}", fmt::join(sets(point), " "));
}

std::vector<std::string> SweepGrid::all_sets() const {
  std::vector<std::string> sets;
  for (const SweepAxis& axis : axes_) {
    for (const std::vector<std::string>& step : axis.values) {
      for (size_t i = 0; i < step.size(); ++i) sets.push_back(axis.paths[i] + '=' + step[i]);
    }
  }
  return sets;
}

}  // namespace herdsim

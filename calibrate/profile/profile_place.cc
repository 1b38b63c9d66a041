#include "calibrate/profile/profile_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace herdsim {

namespace pb = google::protobuf;

Place Place::child(const std::string& name, int index) const {
  const pb::FieldDescriptor* field = message_.GetDescriptor()->FindFieldByName(name);
  const pb::Reflection* reflection = message_.GetReflection();
  const bool repeated = field->is_repeated();
  const pb::Message& inner = repeated ? reflection->GetRepeatedMessage(message_, field, index)
                                      : reflection->GetMessage(message_, field);
  const std::string path =
      (path_.empty() ? "" : path_ + ".") + name + (repeated ? fmt::format("[{}]", index) : "");
  const Tree* tree =
      tree_ == nullptr ? nullptr : tree_->GetTreeForNested(field, repeated ? index : -1);
  return {inner, tree, path, location(field, index), file_, faults_};
}

void Place::fault(const std::string& name, std::string problem, std::string allowed,
                  int index) const {
  const pb::FieldDescriptor* field = message_.GetDescriptor()->FindFieldByName(name);
  const Location at = location(field, index);
  std::string path = (path_.empty() ? "" : path_ + ".") + name;
  if (index >= 0) path += fmt::format("[{}]", index);
  faults_.add({.file = file_,
               .line = at.line + 1,
               .column = at.column + 1,
               .field = std::move(path),
               .problem = std::move(problem),
               .allowed = std::move(allowed)});
}

void Place::check_required(bool all) const {
  const pb::Descriptor& type = *message_.GetDescriptor();
  const pb::Reflection& reflection = *message_.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    const bool wanted = field->is_required() && (all || field->name() == "name");
    if (wanted && !reflection.HasField(message_, field)) {
      fault(field->name(), "is missing");
    }
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (field->is_repeated()) {
      for (int j = 0; j < reflection.FieldSize(message_, field); ++j)
        child(field->name(), j).check_required();
    } else if (reflection.HasField(message_, field)) {
      child(field->name()).check_required();
    }
  }
}

Place::Location Place::location(const pb::FieldDescriptor* field, int index) const {
  Location at(-1, -1);
  if (tree_ != nullptr) {
    at = tree_->GetLocation(field, field->is_repeated() ? std::max(index, 0) : -1);
    if (at.line < 0 && field->is_repeated()) at = tree_->GetLocation(field, 0);
  }
  if (at.line < 0) at = at_;
  return at.line < 0 ? Location(0, 0) : at;
}

bool is_positive(double v) { return v > 0 && std::isfinite(v); }

void check_positive(const Place& place, const std::string& field, double value) {
  if (!is_positive(value)) place.fault(field, fmt::format("{} is not positive", value), "above 0");
}

void check_step(const Place& place, const std::string& field, int64_t step) {
  constexpr int64_t kLargest = 65536;
  if (step < 1 || step > kLargest)
    place.fault(field, fmt::format("{} is out of range", step), fmt::format("1 to {}", kLargest));
}

Provenance provenance(const profile::Source& source, const Place& place) {
  if (source.text().empty()) place.fault("text", "is empty", "where the numbers come from");
  return {static_cast<Evidence>(source.evidence()), source.text()};
}

bool check_axis(const Place& place, const std::string& field, const std::vector<double>& nodes) {
  if (nodes.empty()) {
    place.fault(field, "is empty", "at least one number");
    return false;
  }
  bool good = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_positive(nodes[i])) {
      place.fault(field, fmt::format("{} is not positive", nodes[i]), "above 0",
                  static_cast<int>(i));
      good = false;
    } else if (i > 0 && nodes[i] <= nodes[i - 1]) {
      place.fault(field, fmt::format("{} follows {}", nodes[i], nodes[i - 1]),
                  "strictly increasing numbers", static_cast<int>(i));
      good = false;
    }
  }
  return good;
}

bool check_values(const Place& place, const std::string& field, const std::vector<double>& values,
                  size_t expected, double lowest, double highest) {
  bool good = true;
  if (values.size() != expected) {
    place.fault(field, fmt::format("{} numbers for {} points", values.size(), expected),
                "one a point");
    good = false;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bool above = lowest > 0 ? values[i] >= lowest : values[i] > 0;
    if (std::isfinite(values[i]) && above && values[i] <= highest) continue;
    std::string allowed = lowest > 0 ? fmt::format("{} or more", lowest) : std::string("above 0");
    if (std::isfinite(highest)) allowed += fmt::format(", at most {}", highest);
    place.fault(field, fmt::format("{} is out of range", values[i]), allowed, static_cast<int>(i));
    good = false;
  }
  return good;
}

LogCurve curve(const Place& place, const std::string& x_field, const std::vector<double>& x,
               const std::string& y_field, const std::vector<double>& y, double lowest,
               double highest) {
  const bool good_axis = check_axis(place, x_field, x);
  if (!check_values(place, y_field, y, x.size(), lowest, highest) || !good_axis) return {};
  std::vector<LogCurve::Point> points;
  for (size_t i = 0; i < x.size(); ++i) points.push_back({x[i], y[i]});
  return LogCurve(std::move(points));
}

void check_time_grows(const Place& place, const std::string& y_field, const LogCurve& rate,
                      double power) {
  for (size_t i = 1; i < rate.points().size(); ++i) {
    const auto& [x0, y0] = rate.points()[i - 1];
    const auto& [x1, y1] = rate.points()[i];
    if (y1 / y0 > std::pow(x1 / x0, power)) {
      place.fault(
          y_field,
          fmt::format("the rate grows from {} to {} while the size grows from {} to {} only", y0,
                      y1, x0, x1),
          "a rate at which more work takes no less time", static_cast<int>(i));
    }
  }
}

void check_never_falls(const Place& place, const std::string& field,
                       const std::vector<double>& values) {
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] < values[i - 1]) {
      place.fault(field, fmt::format("{} follows {}", values[i], values[i - 1]),
                  "numbers that never fall", static_cast<int>(i));
    }
  }
}

void check_sustained_time(const Place& place, const LogCurve& factor) {
  for (size_t i = 1; i < factor.points().size(); ++i) {
    const auto& [x0, y0] = factor.points()[i - 1];
    const auto& [x1, y1] = factor.points()[i];
    if (x1 * y1 < x0 * y0) {
      place.fault("sustained_factor",
                  fmt::format("{} follows {} so soon that a longer burst takes less time", y1, y0),
                  "", static_cast<int>(i));
    }
  }
}

GemmTiles read_tiles(const profile::Tiles& in, const Place& place) {
  GemmTiles out{.slicing_nanoseconds = in.slicing_nanoseconds(),
                .partial_sum_bytes_per_second = in.partial_sum_gigabytes_per_second() * 1e9,
                .memory_bytes_per_second = in.memory_gigabytes_per_second() * 1e9,
                .scale_nanoseconds = in.scale_nanoseconds(),
                .exponent = in.exponent(),
                .provenance = provenance(in.source(), place.child("source"))};
  check_positive(place, "slicing_nanoseconds", in.slicing_nanoseconds());
  check_positive(place, "partial_sum_gigabytes_per_second", in.partial_sum_gigabytes_per_second());
  check_positive(place, "memory_gigabytes_per_second", in.memory_gigabytes_per_second());
  check_positive(place, "scale_nanoseconds", in.scale_nanoseconds());
  if (!(in.exponent() > 0 && in.exponent() <= 1))
    place.fault("exponent", fmt::format("{} is out of range", in.exponent()), "above 0, at most 1");
  if (in.tile_size() == 0) place.fault("tile", "is empty", "one or more");
  for (int i = 0; i < in.tile_size(); ++i) {
    const profile::Tiles::Tile& tile = in.tile(i);
    const Place at = place.child("tile", i);
    check_step(at, "rows", tile.rows());
    check_step(at, "columns", tile.columns());
    check_positive(at, "start_nanoseconds", tile.start_nanoseconds());
    check_positive(at, "nanoseconds_per_k", tile.nanoseconds_per_k());
    out.tiles.push_back(
        {tile.rows(), tile.columns(), tile.start_nanoseconds(), tile.nanoseconds_per_k()});
  }
  for (const int64_t slices : in.slices()) {
    check_step(place, "slices", slices);
    out.slices.push_back(slices);
  }
  if (std::find(out.slices.begin(), out.slices.end(), 1) == out.slices.end())
    place.fault("slices", "lacks 1", "1, and what else k is cut into");
  return out;
}

}  // namespace herdsim

#include "calibrate/fit/collective_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "calibrate/fit/isotonic.h"
#include "calibrate/profile/collective_time.h"
#include "calibrate/profile/error_summary.h"
#include "calibrate/profile/profile_check.h"

namespace herdsim {
namespace {

// All-gathers over ten ranks are a few bytes short of the power of two asked for; the nearest
// sixteenth of an octave is one size.
int64_t size_class(Bytes size) {
  return std::lround(16 * std::log2(static_cast<double>(size.count())));
}

// What a line misses by less is no step.
constexpr double kStep = 0.05;

struct SizeTime {
  double size = 0;
  double seconds = 0;
};

double on_line(const SizeTime& a, const SizeTime& b, double size) {
  return a.seconds + (b.seconds - a.seconds) * (size - a.size) / (b.size - a.size);
}

// Keeps the points that the line between their neighbours misses (Douglas and Peucker 1973).
void keep_bends(const std::vector<SizeTime>& points, size_t first, size_t last, double tolerance,
                std::vector<bool>& kept) {
  size_t worst = first;
  double worst_error = tolerance;
  for (size_t i = first + 1; i < last; ++i) {
    const double error =
        std::abs(on_line(points[first], points[last], points[i].size) / points[i].seconds - 1);
    if (error > worst_error) {
      worst_error = error;
      worst = i;
    }
  }
  if (worst == first) return;
  kept[worst] = true;
  keep_bends(points, first, worst, tolerance, kept);
  keep_bends(points, worst, last, tolerance, kept);
}

// The measured sizes of one (kind, ranks, nodes).
struct SizeLogSeconds {
  Bytes size;
  double log_seconds = 0;
};
using Series = std::map<int64_t, SizeLogSeconds>;

SizeTime size_time(const SizeLogSeconds& point) {
  return {static_cast<double>(point.size.count()), std::exp(point.log_seconds)};
}

Series series_of(const CollectiveMeasurement& group, const std::vector<CollectiveMeasurement>& rows,
                 int left_out) {
  std::map<int64_t, std::vector<double>> times;
  Series series;
  for (const CollectiveMeasurement& row : rows) {
    if (row.kind != group.kind || row.ranks != group.ranks || row.nodes != group.nodes ||
        fold_of(row) == left_out)
      continue;
    times[size_class(row.size)].push_back(std::log(row.seconds));
    series.try_emplace(size_class(row.size), SizeLogSeconds{row.size});
  }
  for (auto& [size, point] : series) point.log_seconds = median(times[size]);
  return series;
}

// The kind that NCCL runs with the same ring, steps and tuning, so that both change protocol at one
// size; empty: none.
std::string_view sibling_of(std::string_view kind) {
  if (kind == "all_gather") return "reduce_scatter";
  if (kind == "reduce_scatter") return "all_gather";
  return {};
}

// Sizes at which only the sibling was measured and shows a step that a line between its neighbours
// would miss, as where the protocol changes: ours is taken to be there too. The ratio of the two is
// that of the neighbours.
void add_steps_of_sibling(const Series& sibling, Series& series) {
  Series added;
  for (const auto& [size, there] : sibling) {
    const auto after = series.upper_bound(size);
    if (after == series.end() || after == series.begin()) continue;
    const auto before = std::prev(after);
    const auto left = sibling.find(before->first), right = sibling.find(after->first);
    if (before->first == size || left == sibling.end() || right == sibling.end()) continue;
    const double straight =
        on_line(size_time(left->second), size_time(right->second), size_time(there).size);
    if (std::abs(straight / size_time(there).seconds - 1) < kStep) continue;
    const double at_left = before->second.log_seconds - left->second.log_seconds;
    const double at_right = after->second.log_seconds - right->second.log_seconds;
    const double share = static_cast<double>(size - before->first) /
                         static_cast<double>(after->first - before->first);
    added[size] = {there.size, there.log_seconds + at_left + share * (at_right - at_left)};
  }
  series.merge(added);
}

CollectiveCurve curve_of(const CollectiveMeasurement& group, const Series& series,
                         double tolerance) {
  std::vector<double> log_seconds;
  for (const auto& [size, point] : series) log_seconds.push_back(point.log_seconds);
  make_nondecreasing(log_seconds, std::vector<double>(log_seconds.size(), 1.0));
  std::vector<SizeTime> points;
  for (const auto& [size, point] : series)
    points.push_back(size_time({point.size, log_seconds[points.size()]}));
  std::vector<bool> kept(points.size(), false);
  kept.front() = kept.back() = true;
  keep_bends(points, 0, points.size() - 1, tolerance, kept);
  CollectiveCurve curve{.kind = group.kind, .ranks = group.ranks, .nodes = group.nodes};
  for (size_t i = 0; i < points.size(); ++i) {
    if (!kept[i]) continue;
    curve.points.push_back(collective_point(group.kind, group.ranks,
                                            Bytes(static_cast<int64_t>(points[i].size)),
                                            seconds_rounded_up(points[i].seconds)));
  }
  return curve;
}

}  // namespace

std::vector<CollectiveCurve> fit_collectives(const std::vector<CollectiveMeasurement>& rows,
                                             const Provenance& provenance, double tolerance,
                                             int left_out) {
  std::vector<CollectiveCurve> curves;
  for (const CollectiveMeasurement& group : rows) {
    const bool done = std::any_of(curves.begin(), curves.end(), [&](const CollectiveCurve& c) {
      return c.kind == group.kind && c.ranks == group.ranks && c.nodes == group.nodes;
    });
    if (done) continue;
    Series series = series_of(group, rows, left_out);
    if (series.empty()) continue;
    CollectiveMeasurement sibling = group;
    sibling.kind = sibling_of(group.kind);
    if (!sibling.kind.empty()) add_steps_of_sibling(series_of(sibling, rows, left_out), series);
    curves.push_back(curve_of(group, series, tolerance));
    curves.back().provenance = provenance;
  }
  return curves;
}

void cross_validate_collectives(const std::vector<CollectiveMeasurement>& rows, double tolerance,
                                ErrorTable& errors) {
  for (int fold = 0; fold < kFolds; ++fold) {
    for (const CollectiveCurve& curve : fit_collectives(rows, {}, tolerance, fold)) {
      for (const CollectiveMeasurement& row : rows) {
        if (row.kind != curve.kind || row.ranks != curve.ranks || row.nodes != curve.nodes ||
            fold_of(row) != fold)
          continue;
        const bool one_node = row.nodes == 1;
        const bool large = row.size >= (one_node ? mebibytes(1) : mebibytes(64));
        const std::string where =
            one_node ? "collectives in a node, " : "collectives across nodes, ";
        const double predicted = collective_seconds(curve, row.size);
        if (row.size < curve.points.front().size || row.size > curve.points.back().size) {
          errors.add(where + "beyond the sizes fitted", predicted, row.seconds);
          continue;
        }
        const std::string size =
            large ? (one_node ? "1 MiB and more" : "64 MiB and more") : "smaller";
        const std::array<double, 2> goal = !large     ? std::array{0.25, 0.25}
                                           : one_node ? std::array{0.05, 0.12}
                                                      : std::array{0.10, 0.20};
        errors.add(where + size, predicted, row.seconds, goal);
        errors.add(where + size + ", " + row.kind, predicted, row.seconds);
      }
    }
  }
}

}  // namespace herdsim

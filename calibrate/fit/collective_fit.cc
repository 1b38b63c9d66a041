#include "calibrate/fit/collective_fit.h"

#include <algorithm>
#include <cmath>
#include <map>

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

CollectiveCurve curve_of(const CollectiveMeasurement& group,
                         const std::map<int64_t, std::vector<const CollectiveMeasurement*>>& sizes,
                         double tolerance) {
  std::vector<double> log_seconds;
  for (const auto& [size, rows] : sizes) {
    std::vector<double> seconds;
    for (const CollectiveMeasurement* row : rows) seconds.push_back(std::log(row->seconds));
    log_seconds.push_back(median(seconds));
  }
  make_nondecreasing(log_seconds, std::vector<double>(log_seconds.size(), 1.0));
  std::vector<SizeTime> points;
  for (const auto& [size, rows] : sizes) {
    points.push_back(
        {static_cast<double>(rows.front()->size.count()), std::exp(log_seconds[points.size()])});
  }
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
    std::map<int64_t, std::vector<const CollectiveMeasurement*>> sizes;
    for (const CollectiveMeasurement& row : rows) {
      if (row.kind != group.kind || row.ranks != group.ranks || row.nodes != group.nodes) continue;
      if (fold_of(row) != left_out) sizes[size_class(row.size)].push_back(&row);
    }
    if (sizes.empty()) continue;
    curves.push_back(curve_of(group, sizes, tolerance));
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

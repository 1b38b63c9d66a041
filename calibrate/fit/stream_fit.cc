#include "calibrate/fit/stream_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

constexpr int kStreamReweightings = 30;
constexpr double kStreamRobustScale = 0.02;

}  // namespace

LogCurve StreamFit::curve(double least_bytes, double most_bytes) const {
  const int steps =
      std::max(1, static_cast<int>(std::ceil(4 * std::log10(most_bytes / least_bytes))));
  std::vector<LogCurve::Point> points;
  for (int i = 0; i <= steps; ++i) {
    const double bytes = std::round(
        least_bytes * std::pow(most_bytes / least_bytes, static_cast<double>(i) / steps));
    points.push_back({bytes, bytes / (ramp_seconds + bytes / bytes_per_second)});
  }
  return LogCurve(std::move(points));
}

StreamFit fit_stream(const std::vector<StreamMeasurement>& rows, StreamClass stream,
                     Duration launch_floor, int left_out) {
  std::vector<std::pair<double, double>> points;  // bytes, seconds beyond the floor
  for (const StreamMeasurement& row : rows) {
    if (row.traffic.stream != stream || fold_of(row) == left_out) continue;
    points.emplace_back(static_cast<double>(row.traffic.moved.count()),
                        row.seconds - launch_floor.seconds());
  }
  HERDSIM_CHECK(points.size() >= 2) << "too few streams to fit";
  double ramp = 0, per_byte = 0;
  std::vector<double> weight(points.size(), 1.0);
  for (int pass = 0; pass < kStreamReweightings; ++pass) {
    // Weighted least squares of the relative error of ramp + per_byte * bytes.
    double a = 0, b = 0, c = 0, u = 0, v = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const auto& [bytes, seconds] = points[i];
      const double w = weight[i] / (seconds * seconds);
      a += w;
      b += w * bytes;
      c += w * bytes * bytes;
      u += w * seconds;
      v += w * bytes * seconds;
    }
    const double determinant = a * c - b * b;
    ramp = (u * c - v * b) / determinant;
    per_byte = (a * v - b * u) / determinant;
    // No kernel starts before its launch.
    if (ramp < 0 || !std::isfinite(ramp)) {
      ramp = 0;
      per_byte = v / c;
    }
    for (size_t i = 0; i < points.size(); ++i) {
      const auto& [bytes, seconds] = points[i];
      const double error = std::abs((ramp + per_byte * bytes) / seconds - 1);
      weight[i] = kStreamRobustScale / std::max(kStreamRobustScale, error);
    }
  }
  return {ramp, 1 / per_byte};
}

void cross_validate_stream(const std::vector<StreamMeasurement>& rows, StreamClass stream,
                           const DeviceProfile& device, const std::string& name,
                           ErrorTable& errors) {
  double least = INFINITY, most = 0;
  for (const StreamMeasurement& row : rows) {
    if (row.traffic.stream != stream) continue;
    const double bytes = static_cast<double>(row.traffic.moved.count());
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
  for (int fold = 0; fold < kFolds; ++fold) {
    DeviceProfile profile = device;
    profile.stream[static_cast<size_t>(stream)].bytes_per_second =
        fit_stream(rows, stream, device.launch_floor, fold).curve(least, most);
    for (const StreamMeasurement& row : rows) {
      if (row.traffic.stream != stream || fold_of(row) != fold) continue;
      errors.add(name, stream_cost(row.traffic, profile).time.seconds(), row.seconds);
    }
  }
}

}  // namespace herdsim

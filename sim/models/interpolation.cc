#include "sim/models/interpolation.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {

LogAxis::LogAxis(std::vector<double> nodes) : nodes_(std::move(nodes)) {
  HERDSIM_CHECK(!nodes_.empty());
  log_nodes_.reserve(nodes_.size());
  for (const double x : nodes_) {
    HERDSIM_CHECK(x > 0 && std::isfinite(x)) << "axis node " << x;
    const double log_x = std::log2(x);
    HERDSIM_CHECK(log_nodes_.empty() || log_x > log_nodes_.back())
        << "axis not increasing at " << x;
    log_nodes_.push_back(log_x);
  }
}

AxisPosition LogAxis::locate(double x) const {
  const size_t last = log_nodes_.size() - 1;
  if (x <= nodes_.front()) return {.inside = x == nodes_.front()};
  if (x >= nodes_.back()) {
    return last == 0 ? AxisPosition{} : AxisPosition{last - 1, 1.0, x == nodes_.back()};
  }
  size_t lower = 0;
  while (nodes_[lower + 1] < x) ++lower;
  const double width = log_nodes_[lower + 1] - log_nodes_[lower];
  return {lower, (std::log2(x) - log_nodes_[lower]) / width, true};
}

LogCurve::LogCurve(std::vector<Point> points) : points_(std::move(points)) {
  std::vector<double> x;
  x.reserve(points_.size());
  log_y_.reserve(points_.size());
  for (const Point& p : points_) {
    HERDSIM_CHECK(p.y > 0 && std::isfinite(p.y)) << "curve value " << p.y << " at " << p.x;
    x.push_back(p.x);
    log_y_.push_back(std::log2(p.y));
  }
  axis_ = LogAxis(std::move(x));
}

double LogCurve::at(double x) const {
  const AxisPosition p = axis_.locate(x);
  if (p.share == 0) return points_[p.lower].y;
  const double log_y = log_y_[p.lower] + p.share * (log_y_[p.lower + 1] - log_y_[p.lower]);
  return std::exp2(log_y);
}

LogGrid3::LogGrid3(Axes axes, std::vector<double> values)
    : axes_(std::move(axes)), values_(std::move(values)) {
  HERDSIM_CHECK(values_.size() == axes_[0].size() * axes_[1].size() * axes_[2].size())
      << values_.size() << " values for the grid";
  log_values_.reserve(values_.size());
  for (const double v : values_) {
    HERDSIM_CHECK(v > 0 && std::isfinite(v)) << "grid value " << v;
    log_values_.push_back(std::log2(v));
  }
}

double LogGrid3::at(double x, double y, double z) const {
  const AxisPosition px = axes_[0].locate(x), py = axes_[1].locate(y), pz = axes_[2].locate(z);
  const size_t nz = axes_[2].size();
  const size_t plane = axes_[1].size() * nz;
  const double* corner = &log_values_[px.lower * plane + py.lower * nz + pz.lower];
  // Steps of zero where an axis has one node only: there is no neighbour to read.
  const size_t dx = axes_[0].size() > 1 ? plane : 0;
  const size_t dy = axes_[1].size() > 1 ? nz : 0;
  const size_t dz = nz > 1 ? 1 : 0;
  const auto along_z = [&](const double* c) { return c[0] + pz.share * (c[dz] - c[0]); };
  const auto along_y = [&](const double* c) {
    const double near = along_z(c);
    return near + py.share * (along_z(c + dy) - near);
  };
  const double near = along_y(corner);
  return std::exp2(near + px.share * (along_y(corner + dx) - near));
}

bool LogGrid3::is_nondecreasing() const {
  const size_t nx = axes_[0].size(), ny = axes_[1].size(), nz = axes_[2].size();
  for (size_t i = 0; i < nx; ++i) {
    for (size_t j = 0; j < ny; ++j) {
      for (size_t k = 0; k < nz; ++k) {
        const double here = value(i, j, k);
        if (i + 1 < nx && value(i + 1, j, k) < here) return false;
        if (j + 1 < ny && value(i, j + 1, k) < here) return false;
        if (k + 1 < nz && value(i, j, k + 1) < here) return false;
      }
    }
  }
  return true;
}

}  // namespace herdsim

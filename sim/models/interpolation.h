// Measured curves and grids, interpolated where they were measured and honest about where they were
// not.
//
// Sizes and times of kernels span six decades and follow power laws between bends, so both axes are
// logarithmic: between two points y = y0 (x / x0)^s with the slope s the two points define. A power
// law between neighbours keeps what the points have: positive stays positive, increasing stays
// increasing, also in several dimensions (multilinear in the logarithms). Outside the outermost
// points the value is that of the border; `covers()` says so and callers mark the result as
// extrapolated.
//
//   const LogCurve rate({{1e6, 1.2e12}, {1e8, 2.6e12}});
//   rate.at(1e7);         // 1.77e12, the geometric mean
//   rate.covers(1e9);     // false; rate.at(1e9) is 2.6e12
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace herdsim {

// Where a value lies between two neighbouring nodes of an axis.
struct AxisPosition {
  size_t lower = 0;     // node at or below, the last but one at most
  double share = 0;     // 0 at `lower`, 1 at the next node
  bool inside = false;  // within the outermost nodes
};

// Increasing positive nodes with their logarithms.
class LogAxis {
 public:
  LogAxis() = default;
  // Requires: nodes not empty, positive, strictly increasing.
  explicit LogAxis(std::vector<double> nodes);

  // Complexity: linear in the nodes, of which an axis has a few dozen at most; contiguous, so
  // faster than a bisection.
  AxisPosition locate(double x) const;
  const std::vector<double>& nodes() const { return nodes_; }
  size_t size() const { return nodes_.size(); }
  bool covers(double x) const { return x >= nodes_.front() && x <= nodes_.back(); }

 private:
  std::vector<double> nodes_;
  std::vector<double> log_nodes_;
};

class LogCurve {
 public:
  struct Point {
    double x = 0;
    double y = 0;
  };
  LogCurve() = default;
  // Requires: points not empty; x positive and strictly increasing; y positive.
  explicit LogCurve(std::vector<Point> points);

  bool empty() const { return points_.empty(); }
  // Requires: not empty(), x > 0. Clamps to the border outside.
  double at(double x) const;
  bool covers(double x) const { return axis_.covers(x); }
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
  LogAxis axis_;
  std::vector<double> log_y_;
};

// A function of three sizes on a rectangular grid; the last axis runs fastest.
class LogGrid3 {
 public:
  using Axes = std::array<LogAxis, 3>;
  LogGrid3() = default;
  // Requires: values positive, one a node.
  LogGrid3(Axes axes, std::vector<double> values);

  bool empty() const { return values_.empty(); }
  // Requires: not empty(), coordinates positive. Clamps to the border outside.
  double at(double x, double y, double z) const;
  bool covers(double x, double y, double z) const {
    return axes_[0].covers(x) && axes_[1].covers(y) && axes_[2].covers(z);
  }
  const Axes& axes() const { return axes_; }
  const std::vector<double>& values() const { return values_; }
  double value(size_t i, size_t j, size_t k) const {
    return values_[(i * axes_[1].size() + j) * axes_[2].size() + k];
  }
  // True where no value falls as any one coordinate grows; then at() never falls either.
  bool is_nondecreasing() const;

 private:
  Axes axes_;
  std::vector<double> values_;
  std::vector<double> log_values_;
};

}  // namespace herdsim

#include "calibrate/fit/gemm_fit.h"

#include <Eigen/Sparse>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/fit/isotonic.h"
#include "sim/base/check.h"
#include "sim/models/compute_time.h"
#include "sim/models/gemm_tiles.h"

namespace herdsim {
namespace {

// Errors up to this share count squared, larger ones in proportion.
constexpr double kGemmRobustScale = 0.04;
constexpr int kReweightings = 6;
// The same with tiles: their errors are of whole waves, not of spikes.
constexpr double kTiledRobustScale = 0.1;
constexpr int kTiledReweightings = 10;
// Penalty on a fall between neighbours that would fall, with tiles; neighbours this close stay
// held.
constexpr double kFallPenalty = 30;
constexpr double kHeld = 1e-3;
// Penalty on second differences over an octave, against one row of weight 1.
constexpr double kGemmSmoothness = 0.1;
// Up to 32 rows cost the same; one row more than 256, 512, 768 or 1,024 takes 4 to 12 % longer, the
// mean of which rounding up to 32 explains. Above 1,024 rows the step is gone.
constexpr int64_t kRowStep = 32;
constexpr int64_t kRowStepUntil = 1088;
// A row shorter than the floor says nothing about the body.
constexpr double kLeastBodyShare = 0.15;
// Nanoseconds of burst time at which the sustained factor has a point; the first is fixed at 1.
constexpr std::array<double, 6> kSustainedKnots = {2.5e5, 5e5, 1e6, 2e6, 4e6, 8e6};

struct Term {
  int unknown = 0;
  double weight = 0;
};

struct Equation {
  std::vector<Term> terms;
  double value = 0;
  double weight = 1;
};

double smooth_roofline_nanoseconds(double m, double n, double k, DataType dtype,
                                   const DeviceProfile& device) {
  const double operand = static_cast<double>(bytes_per_element(dtype));
  const double arithmetic = 2 * m * n * k / device.peak_of(dtype).per_second();
  const double traffic = (operand * (m * k + n * k) + std::max(operand, 2.0) * m * n) /
                         static_cast<double>(device.hbm_bandwidth.bytes_per_second());
  // A few hundred nanoseconds of fill and drain keep the smallest products from dominating the
  // surface's range.
  return (arithmetic + traffic) * 1e9 + 300;
}

class GemmProblem {
 public:
  GemmProblem(DataType dtype, const DeviceProfile& device, const GemmGrid& grid)
      : dtype_(dtype),
        device_(device),
        tiles_(grid.tiles),
        axes_{LogAxis(grid.m), LogAxis(grid.n), LogAxis(grid.k)} {
    nodes_ = static_cast<int>(grid.m.size() * grid.n.size() * grid.k.size());
    unknowns_ = nodes_ + static_cast<int>(kSustainedKnots.size()) - 1;
    add_smoothness();
  }

  void add_row(const GemmMeasurement& row, bool sustained) {
    const int64_t m = tiles_.empty() && row.shape.m <= kRowStepUntil
                          ? (row.shape.m + kRowStep - 1) / kRowStep * kRowStep
                          : row.shape.m;
    const std::array<double, 3> x = {static_cast<double>(m), static_cast<double>(row.shape.n),
                                     static_cast<double>(row.shape.k)};
    const double time = row.seconds * 1e9;
    const double floor = static_cast<double>(device_.launch_floor.nanoseconds());
    const double body = std::max(time - floor, kLeastBodyShare * floor);
    Equation equation;
    equation.value = std::log(body) - std::log(expected_nanoseconds(row.shape, x));
    equation.weight = std::pow(std::min(1.0, body / time), 2);
    std::array<AxisPosition, 3> at;
    for (size_t d = 0; d < 3; ++d) at[d] = axes_[d].locate(x[d]);
    for (int corner = 0; corner < 8; ++corner) {
      double weight = 1;
      std::array<size_t, 3> node{};
      for (size_t d = 0; d < 3; ++d) {
        const bool upper = ((corner >> d) & 1) != 0;
        weight *= upper ? at[d].share : 1 - at[d].share;
        node[d] = at[d].lower + (upper ? 1 : 0);
      }
      if (weight > 0) equation.terms.push_back({index(node), weight});
    }
    if (sustained) add_sustained_terms(time, equation);
    rows_.push_back(std::move(equation));
  }

  // Least squares, reweighted towards least absolute errors.
  Eigen::VectorXd solve() const {
    std::vector<double> weight(rows_.size(), 1.0);
    const bool tiled = !tiles_.empty();
    const double scale = tiled ? kTiledRobustScale : kGemmRobustScale;
    std::vector<std::array<int, 2>> held;
    Eigen::VectorXd x;
    for (int pass = 0; pass < (tiled ? kTiledReweightings : kReweightings); ++pass) {
      std::vector<Eigen::Triplet<double>> normal = penalties_;
      for (const auto& [lower, upper] : held) {
        for (const int i : {lower, upper}) normal.emplace_back(i, i, kFallPenalty);
        normal.emplace_back(lower, upper, -kFallPenalty);
        normal.emplace_back(upper, lower, -kFallPenalty);
      }
      Eigen::VectorXd right = Eigen::VectorXd::Zero(unknowns_);
      for (size_t i = 0; i < rows_.size(); ++i) {
        const double w = weight[i] * rows_[i].weight;
        for (const Term& a : rows_[i].terms) {
          right[a.unknown] += w * a.weight * rows_[i].value;
          for (const Term& b : rows_[i].terms) {
            normal.emplace_back(a.unknown, b.unknown, w * a.weight * b.weight);
          }
        }
      }
      Eigen::SparseMatrix<double> matrix(unknowns_, unknowns_);
      matrix.setFromTriplets(normal.begin(), normal.end());
      const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> factors(matrix);
      x = factors.solve(right);
      for (size_t i = 0; i < rows_.size(); ++i) {
        double error = -rows_[i].value;
        for (const Term& term : rows_[i].terms) error += term.weight * x[term.unknown];
        weight[i] = scale / std::max(scale, std::abs(error));
      }
      if (tiled) held = falling_neighbours(x, held);
    }
    return x;
  }

  GemmSurface surface(const Eigen::VectorXd& x) const {
    std::vector<double> time(static_cast<size_t>(nodes_));
    for_each_node([&](const std::array<size_t, 3>& node) {
      // With tiles the grid is of the time at a factor of one.
      const double base = tiles_.empty() ? smooth_roofline_nanoseconds(
                                               axes_[0].nodes()[node[0]], axes_[1].nodes()[node[1]],
                                               axes_[2].nodes()[node[2]], dtype_, device_)
                                         : tiles_.scale_nanoseconds;
      time[static_cast<size_t>(index(node))] = base * std::exp(x[index(node)]);
    });
    make_monotone(time);
    if (tiles_.empty()) keep_below_peak(time);
    GemmSurface out;
    out.dtype = dtype_;
    out.nanoseconds = LogGrid3(axes_, std::move(time));
    out.tiles = tiles_;
    if (tiles_.empty()) {
      out.row_step = kRowStep;
      out.row_step_until = kRowStepUntil;
    }
    if (has_sustained_) out.sustained = sustained_curve(x);
    return out;
  }

 private:
  // What the surface corrects. `x`: m, rounded up where there are no tiles, n, k.
  double expected_nanoseconds(const GemmShape& shape, const std::array<double, 3>& x) const {
    if (tiles_.empty()) return smooth_roofline_nanoseconds(x[0], x[1], x[2], dtype_, device_);
    return tiles_.scale_nanoseconds * tile_factor(tiles_, shape, device_.sms);
  }

  int index(const std::array<size_t, 3>& node) const {
    return static_cast<int>((node[0] * axes_[1].size() + node[1]) * axes_[2].size() + node[2]);
  }

  template <class Visit>
  void for_each_node(Visit visit) const {
    std::array<size_t, 3> node{};
    for (node[0] = 0; node[0] < axes_[0].size(); ++node[0]) {
      for (node[1] = 0; node[1] < axes_[1].size(); ++node[1]) {
        for (node[2] = 0; node[2] < axes_[2].size(); ++node[2]) visit(node);
      }
    }
  }

  void add_smoothness() {
    for_each_node([&](const std::array<size_t, 3>& node) {
      for (size_t d = 0; d < 3; ++d) {
        const std::vector<double>& x = axes_[d].nodes();
        if (node[d] == 0 || node[d] + 1 == x.size()) continue;
        std::array<size_t, 3> before = node, after = node;
        --before[d];
        ++after[d];
        const double left = 1 / std::log2(x[node[d]] / x[node[d] - 1]);
        const double right = 1 / std::log2(x[node[d] + 1] / x[node[d]]);
        const std::array<Term, 3> bend = {
            {{index(before), left}, {index(node), -left - right}, {index(after), right}}};
        for (const Term& a : bend) {
          for (const Term& b : bend) {
            penalties_.emplace_back(a.unknown, b.unknown, kGemmSmoothness * a.weight * b.weight);
          }
        }
      }
    });
    // Keeps nodes no row reaches from drifting.
    for (int i = 0; i < unknowns_; ++i) penalties_.emplace_back(i, i, 1e-4);
  }

  void add_sustained_terms(double time, Equation& equation) {
    has_sustained_ = true;
    const LogAxis knots(std::vector<double>(kSustainedKnots.begin(), kSustainedKnots.end()));
    const AxisPosition at = knots.locate(time);
    for (const auto& [knot, weight] :
         {std::pair<size_t, double>{at.lower, 1 - at.share}, {at.lower + 1, at.share}}) {
      if (knot > 0 && weight > 0)
        equation.terms.push_back({nodes_ + static_cast<int>(knot) - 1, weight});
    }
  }

  // Neighbours that fall, and of those held before the ones that would hardly rise. Constrained so,
  // a surface keeps closer to its rows than one that is made monotone afterwards.
  std::vector<std::array<int, 2>> falling_neighbours(
      const Eigen::VectorXd& x, const std::vector<std::array<int, 2>>& held) const {
    std::vector<std::array<int, 2>> falling;
    for_each_node([&](const std::array<size_t, 3>& node) {
      for (size_t d = 0; d < 3; ++d) {
        if (node[d] + 1 == axes_[d].size()) continue;
        std::array<size_t, 3> after = node;
        ++after[d];
        const std::array<int, 2> pair = {index(node), index(after)};
        const double rise = x[pair[1]] - x[pair[0]];
        if (rise < 0 || (rise < kHeld && std::binary_search(held.begin(), held.end(), pair)))
          falling.push_back(pair);
      }
    });
    std::sort(falling.begin(), falling.end());
    return falling;
  }

  LogCurve sustained_curve(const Eigen::VectorXd& x) const {
    std::vector<LogCurve::Point> points = {{kSustainedKnots[0], 1.0}};
    for (size_t i = 1; i < kSustainedKnots.size(); ++i) {
      points.push_back(
          {kSustainedKnots[i], std::max(1.0, std::exp(x[nodes_ + static_cast<int>(i) - 1]))});
    }
    return LogCurve(std::move(points));
  }

  // Nodes that many rows decided move less than those few did.
  void make_monotone(std::vector<double>& time) const {
    std::vector<double> weight(time.size(), 1e-2);
    for (const Equation& row : rows_) {
      for (const Term& term : row.terms) {
        if (term.unknown < nodes_)
          weight[static_cast<size_t>(term.unknown)] += row.weight * term.weight;
      }
    }
    for (double& t : time) t = std::log(t);
    make_grid_nondecreasing({axes_[0].size(), axes_[1].size(), axes_[2].size()}, time, weight);
    for (double& t : time) t = std::exp(t);
  }

  // Corners that no row reaches may have been bent above what the device can do.
  void keep_below_peak(std::vector<double>& time) const {
    for_each_node([&](const std::array<size_t, 3>& node) {
      double flops = 2;
      for (size_t d = 0; d < 3; ++d) flops *= axes_[d].nodes()[node[d]];
      double& here = time[static_cast<size_t>(index(node))];
      here = std::max(here, 1.001e9 * flops / device_.peak_of(dtype_).per_second());
    });
  }

  DataType dtype_;
  const DeviceProfile& device_;
  const GemmTiles& tiles_;
  LogGrid3::Axes axes_;
  int nodes_ = 0;
  int unknowns_ = 0;
  bool has_sustained_ = false;
  std::vector<Equation> rows_;
  std::vector<Eigen::Triplet<double>> penalties_;
};

}  // namespace

GemmGrid default_gemm_grid() {
  return {
      .m = {1, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 32768},
      .n = {32, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384, 65536},
      .k = {32, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536}};
}

GemmGrid tiled_gemm_grid(const GemmTiles& tiles) {
  return {.m = {1, 2, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192,
                32768},
          .n = {32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384, 65536},
          .k = {32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192, 16384, 65536},
          .tiles = tiles};
}

GemmGrid coarse_gemm_grid() {
  return {.m = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768},
          .n = {32, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536},
          .k = {32, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536}};
}

GemmSurface fit_gemm(const std::vector<GemmSource>& sources, DataType dtype,
                     const DeviceProfile& device, const GemmGrid& grid,
                     const HeldOutProducts& held_out) {
  GemmProblem problem(dtype, device, grid);
  size_t used = 0;
  for (const GemmSource& source : sources) {
    for (const GemmMeasurement& row : source.rows) {
      if (row.shape.dtype != dtype || row.shape.pass != GemmPass::kForward) continue;
      if (held_out.index >= 0 && held_out.fold(row) == held_out.index) continue;
      problem.add_row(row, source.sustained);
      ++used;
    }
  }
  HERDSIM_CHECK(used > 0) << "no products to fit";
  return problem.surface(problem.solve());
}

void cross_validate_gemm(const std::vector<GemmSource>& sources, DataType dtype,
                         const DeviceProfile& device, const GemmGrid& grid, const std::string& name,
                         ErrorTable& errors) {
  const std::array<double, 2> goal =
      dtype == DataType::kBf16 ? std::array{0.05, 0.12} : std::array{0.0, 0.0};
  // Calls visit(row, source, predicted seconds) for every row, predicted by a fit without its fold.
  const auto predict = [&](int (*fold)(const GemmMeasurement&), const auto& visit) {
    DeviceProfile sustained = device, burst = device;
    for (int index = 0; index < kFolds; ++index) {
      sustained.gemm = {fit_gemm(sources, dtype, device, grid, {fold, index})};
      burst.gemm = sustained.gemm;
      burst.gemm[0].sustained = LogCurve();
      for (const GemmSource& source : sources) {
        for (const GemmMeasurement& row : source.rows) {
          if (row.shape.dtype != dtype || fold(row) != index) continue;
          visit(row, source,
                gemm_cost(row.shape, source.sustained ? sustained : burst).time.seconds());
        }
      }
    }
  };
  predict(fold_of, [&](const GemmMeasurement& row, const GemmSource& source, double predicted) {
    const GemmShape& s = row.shape;
    errors.add(name + ", all", predicted, row.seconds, goal);
    const std::string kind = source.sustained ? ", sustained" : ", burst";
    errors.add(name + kind, predicted, row.seconds);
    if (row.seconds >= 1e-3) errors.add(name + kind + ", 1 ms and more", predicted, row.seconds);
    if (std::min({s.m, s.n, s.k}) >= 1024) {
      errors.add(name + ", m, n, k >= 1,024", predicted, row.seconds, goal);
    } else if (s.m >= 128 && std::min(s.n, s.k) >= 1024) {
      errors.add(name + ", 128 <= m < 1,024 <= n, k", predicted, row.seconds);
    } else if (std::min(s.n, s.k) >= 1024) {
      errors.add(name + ", m < 128, n, k >= 1,024", predicted, row.seconds);
    } else {
      errors.add(name + ", n or k < 1,024", predicted, row.seconds);
    }
  });
  predict(fold_of_weight, [&](const GemmMeasurement& row, const GemmSource&, double predicted) {
    errors.add(name + ", weight (n, k) never seen", predicted, row.seconds);
    if (std::min({row.shape.m, row.shape.n, row.shape.k}) >= 1024) {
      errors.add(name + ", weight (n, k) never seen, m, n, k >= 1,024", predicted, row.seconds);
    }
  });
}

}  // namespace herdsim

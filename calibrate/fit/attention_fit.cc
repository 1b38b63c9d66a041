#include "calibrate/fit/attention_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

constexpr double kRobustScale = 0.05;
constexpr int kIterations = 15;
constexpr double kSmoothness = 5;     // on second differences of a rate curve
constexpr double kLargestStep = 0.7;  // of a logarithm, an iteration
// Tiles per SM at which the fill has a point. Beyond the last one every SM is busy all the time.
const std::vector<double> kFillNodes = {0.0075, 0.03, 0.06, 0.12, 0.25, 0.5, 1,
                                        1.5,    2,    3,    4,    8,    16};
constexpr int kOverheads = 4;
// A profile keeps four digits; a limit must hold after rounding too.
constexpr double kPrintingSlack = 0.998;

// As attention_cost counts them: parts of a tile under a causal mask, whole tiles under a full one.
double tiles_per_sm(const AttentionShape& s, bool causal, int64_t tile_rows, int64_t sms) {
  const double tiles = static_cast<double>(s.query_tokens) / static_cast<double>(tile_rows);
  const double rows = causal ? std::max(1.0, tiles) : std::ceil(tiles);
  return static_cast<double>(s.batch * s.heads) * rows / static_cast<double>(sms);
}

double rounded_up(int64_t size, int64_t step) {
  return static_cast<double>((size + step - 1) / step * step);
}

// Whole tiles over the rectangle asked for.
double padding(const AttentionShape& s, int64_t rows, int64_t keys) {
  return rounded_up(s.query_tokens, rows) * rounded_up(s.kv_tokens, keys) /
         (static_cast<double>(s.query_tokens) * static_cast<double>(s.kv_tokens));
}

std::array<double, kOverheads> overhead_sizes(const AttentionShape& s) {
  const double tokens = static_cast<double>(s.batch * s.kv_tokens);
  const double rows = tokens * static_cast<double>(s.kv_heads);
  return {1.0, tokens, rows * static_cast<double>(s.head_dim) * 4.0, rows};
}

// Unknowns: logarithms of the rates (a block a head dimension), of the fill or the wave exponent
// itself, then four overheads a source. Overheads are in microseconds a call, a thousand tokens, a
// megabyte and a thousand rows, so that all unknowns are of one size.
class AttentionProblem {
 public:
  AttentionProblem(const AttentionFitPlan& plan, size_t sources)
      : plan_(plan), tokens_(plan.tokens), fill_(kFillNodes) {
    fill_at_ = static_cast<int>(plan.tiles.size() * plan.tokens.size());
    overhead_at_ = fill_at_ + (plan.causal ? static_cast<int>(kFillNodes.size()) : 1);
    unknowns_ = overhead_at_ + kOverheads * static_cast<int>(sources);
    x_ = Eigen::VectorXd::Zero(unknowns_);
    x_.head(fill_at_).setConstant(std::log(400e12));
    if (plan.causal) {
      for (size_t i = 0; i < kFillNodes.size(); ++i) {
        x_[fill_at_ + static_cast<int>(i)] = std::log(std::min(1.0, kFillNodes[i]));
      }
    } else {
      x_[fill_at_] = 0.5;
    }
    for (size_t i = 0; i < sources; ++i) x_[overhead_at_ + kOverheads * static_cast<int>(i)] = 8;
  }

  void add(const AttentionMeasurement& row, size_t source) {
    const auto tile =
        std::find_if(plan_.tiles.begin(), plan_.tiles.end(),
                     [&](const AttentionTile& t) { return t.head_dim == row.shape.head_dim; });
    if (tile == plan_.tiles.end()) return;
    Row out{.seconds = row.seconds,
            .flops = row.shape.flops().count(),
            .rates = static_cast<int>(static_cast<size_t>(tile - plan_.tiles.begin()) *
                                      plan_.tokens.size()),
            .tokens = tokens_.locate(static_cast<double>(row.shape.kv_tokens)),
            .overhead_at = overhead_at_ + kOverheads * static_cast<int>(source)};
    const double w = tiles_per_sm(row.shape, plan_.causal, tile->rows, plan_.sms);
    if (plan_.causal) {
      out.fill = fill_.locate(w);
    } else {
      out.flops *= padding(row.shape, tile->rows, tile->keys);
      out.tokens = tokens_.locate(rounded_up(row.shape.kv_tokens, tile->keys));
      out.log_wave = std::log(w / std::ceil(w));
    }
    out.sizes = overhead_sizes(row.shape);
    constexpr std::array<double, kOverheads> kUnits = {1e-6, 1e-9, 1e-12, 1e-9};
    for (int i = 0; i < kOverheads; ++i)
      out.sizes[static_cast<size_t>(i)] *= kUnits[static_cast<size_t>(i)];
    rows_.push_back(out);
  }

  void solve() {
    HERDSIM_CHECK(!rows_.empty()) << "no attention rows to fit";
    Eigen::VectorXd gradient(unknowns_);
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      Eigen::MatrixXd normal = Eigen::MatrixXd::Identity(unknowns_, unknowns_) * 1e-3;
      Eigen::VectorXd right = Eigen::VectorXd::Zero(unknowns_);
      for (const Row& row : rows_) {
        const double error = std::log(row.seconds / predict(row, gradient));
        const double weight = kRobustScale / std::max(kRobustScale, std::abs(error));
        normal.selfadjointView<Eigen::Lower>().rankUpdate(gradient, weight);
        right += gradient * (weight * error);
      }
      add_penalties(normal, right);
      Eigen::VectorXd step = normal.selfadjointView<Eigen::Lower>().ldlt().solve(right);
      for (int i = 0; i < overhead_at_; ++i)
        step[i] = std::clamp(step[i], -kLargestStep, kLargestStep);
      x_ += step;
      if (step.norm() < 1e-5) break;
    }
  }

  AttentionFit result(size_t sources) const {
    AttentionFit out;
    for (size_t t = 0; t < plan_.tiles.size(); ++t) {
      std::vector<LogCurve::Point> points;
      for (size_t i = 0; i < plan_.tokens.size(); ++i) {
        const int at = static_cast<int>(t * plan_.tokens.size() + i);
        points.push_back({plan_.tokens[i], std::exp(x_[at]) * 1e-12});
      }
      out.curves.push_back(
          {.pass = AttentionPass::kForward,
           .causal = plan_.causal,
           .head_dim = plan_.tiles[t].head_dim,
           .teraflops = LogCurve(std::move(points)),
           .tile_rows = plan_.tiles[t].rows,
           .tile_keys = plan_.tiles[t].keys,
           .wave_exponent = plan_.causal ? 0.0 : std::clamp(x_[fill_at_], 0.0, 1.0),
           .measured_from = static_cast<int64_t>(plan_.tokens.front()),
           .measured_to = static_cast<int64_t>(plan_.tokens.back())});
    }
    if (plan_.causal) out.fill = fill_curve();
    for (size_t s = 0; s < sources; ++s) {
      const double* v = &x_[overhead_at_ + kOverheads * static_cast<int>(s)];
      out.overhead.push_back({v[0] * 1e-6, v[1] * 1e-9, v[2] * 1e-12, v[3] * 1e-9});
    }
    return out;
  }

 private:
  struct Row {
    double seconds = 0;
    double flops = 0;
    int rates = 0;
    AxisPosition tokens;
    AxisPosition fill;
    double log_wave = 0;
    int overhead_at = 0;
    std::array<double, kOverheads> sizes{};
  };

  // Predicted seconds; `gradient` of their logarithm.
  double predict(const Row& row, Eigen::VectorXd& gradient) const {
    const int lower = row.rates + static_cast<int>(row.tokens.lower);
    double log_rate = (1 - row.tokens.share) * x_[lower] + row.tokens.share * x_[lower + 1];
    const int fill = fill_at_ + (plan_.causal ? static_cast<int>(row.fill.lower) : 0);
    log_rate += plan_.causal ? (1 - row.fill.share) * x_[fill] + row.fill.share * x_[fill + 1]
                             : x_[fill] * row.log_wave;
    const double kernel = row.flops / std::exp(log_rate);
    double seconds = kernel;
    for (int i = 0; i < kOverheads; ++i)
      seconds += x_[row.overhead_at + i] * row.sizes[static_cast<size_t>(i)];
    // A wild step may make an overhead negative beyond the kernel; stay where the logarithm exists.
    seconds = std::max(seconds, 0.2 * kernel);
    gradient.setZero();
    gradient[lower] -= (1 - row.tokens.share) * kernel / seconds;
    gradient[lower + 1] -= row.tokens.share * kernel / seconds;
    if (plan_.causal) {
      gradient[fill] -= (1 - row.fill.share) * kernel / seconds;
      gradient[fill + 1] -= row.fill.share * kernel / seconds;
    } else {
      gradient[fill] -= row.log_wave * kernel / seconds;
    }
    for (int i = 0; i < kOverheads; ++i) {
      gradient[row.overhead_at + i] = row.sizes[static_cast<size_t>(i)] / seconds;
    }
    return seconds;
  }

  void add_penalties(Eigen::MatrixXd& normal, Eigen::VectorXd& right) const {
    const auto tokens = static_cast<int>(plan_.tokens.size());
    for (int at = 0; at < fill_at_; ++at) {
      const int i = at % tokens;
      if (i == 0 || i + 1 == tokens) continue;
      const std::array<std::pair<int, double>, 3> bend = {
          {{at - 1, 1.0}, {at, -2.0}, {at + 1, 1.0}}};
      const double value = x_[at - 1] - 2 * x_[at] + x_[at + 1];
      for (const auto& [a, wa] : bend) {
        right[a] -= kSmoothness * wa * value;
        for (const auto& [b, wb] : bend) normal(a, b) += kSmoothness * wa * wb;
      }
    }
    // The fill is one when every SM is busy: otherwise it and the rates share a factor that nothing
    // decides.
    if (plan_.causal) {
      const int last = overhead_at_ - 1;
      normal(last, last) += 1e6;
      right[last] -= 1e6 * x_[last];
    }
  }

  // At most one, never falling, and never growing faster than the tiles.
  LogCurve fill_curve() const {
    std::vector<LogCurve::Point> points;
    double before = 0;
    for (size_t i = 0; i < kFillNodes.size(); ++i) {
      double share = std::min(1.0, std::exp(x_[fill_at_ + static_cast<int>(i)]));
      if (i > 0)
        share =
            std::clamp(share, before, kPrintingSlack * before * kFillNodes[i] / kFillNodes[i - 1]);
      points.push_back({kFillNodes[i], share});
      before = share;
    }
    return LogCurve(std::move(points));
  }

  const AttentionFitPlan& plan_;
  LogAxis tokens_;
  LogAxis fill_;
  int fill_at_ = 0;
  int overhead_at_ = 0;
  int unknowns_ = 0;
  Eigen::VectorXd x_;
  std::vector<Row> rows_;
};

}  // namespace

double AttentionOverhead::seconds(const AttentionShape& shape) const {
  const std::array<double, kOverheads> sizes = overhead_sizes(shape);
  return call_seconds * sizes[0] + token_seconds * sizes[1] + kv_byte_seconds * sizes[2] +
         kv_row_seconds * sizes[3];
}

AttentionFit fit_attention(const std::vector<std::vector<AttentionMeasurement>>& sources,
                           const AttentionFitPlan& plan, int left_out) {
  AttentionProblem problem(plan, sources.size());
  for (size_t s = 0; s < sources.size(); ++s) {
    for (const AttentionMeasurement& row : sources[s]) {
      if (fold_of(row) != left_out) problem.add(row, s);
    }
  }
  problem.solve();
  return problem.result(sources.size());
}

void cross_validate_attention(const std::vector<std::vector<AttentionMeasurement>>& sources,
                              const AttentionFitPlan& plan, const DeviceProfile& device,
                              const std::string& name, ErrorTable& errors) {
  constexpr std::array<double, 2> kGoal = {0.06, 0.15};
  for (int fold = 0; fold < kFolds; ++fold) {
    const AttentionFit fit = fit_attention(sources, plan, fold);
    DeviceProfile profile = device;
    profile.attention = {};
    const AttentionKernelId id =
        profile.attention.push_back({.name = "fitted", .curves = fit.curves, .fill = fit.fill});
    for (size_t s = 0; s < sources.size(); ++s) {
      for (const AttentionMeasurement& row : sources[s]) {
        const bool known =
            std::any_of(plan.tiles.begin(), plan.tiles.end(),
                        [&](const AttentionTile& t) { return t.head_dim == row.shape.head_dim; });
        if (!known || fold_of(row) != fold) continue;
        const double kernel = attention_cost(row.shape, id, profile).time.seconds();
        const double predicted = kernel + fit.overhead[s].seconds(row.shape);
        errors.add(name + ", all", predicted, row.seconds, kGoal);
        // What the shipped kernel misses of the rows: the framework's work round it, by intention.
        errors.add(name + ", without the framework's work", kernel + fit.overhead[s].call_seconds,
                   row.seconds);
        errors.add(name + ", head dim " + std::to_string(row.shape.head_dim), predicted,
                   row.seconds);
        if (row.shape.kv_tokens >= 1024)
          errors.add(name + ", 1,024 tokens and more", predicted, row.seconds);
        if (row.shape.heads >= 4 * row.shape.kv_heads)
          errors.add(name + ", 4 or more queries a key", predicted, row.seconds);
        if (row.shape.heads == row.shape.kv_heads)
          errors.add(name + ", a key a query", predicted, row.seconds);
      }
    }
  }
}

LogCurve saturated_rates(const std::vector<PrintedRate>& printed, const AttentionCurve& curve,
                         const AttentionKernel& kernel, int64_t sms) {
  std::vector<LogCurve::Point> points;
  for (const auto& [shape, teraflops] : printed) {
    const double flops = shape.flops().count();
    const double kernel_seconds = flops / (teraflops * 1e12) - kernel.floor.seconds();
    HERDSIM_CHECK(kernel_seconds > 0) << "a printed time below the floor of " << kernel.name;
    const double w = tiles_per_sm(shape, curve.causal, curve.tile_rows, sms);
    double share = 1;
    if (curve.causal) {
      if (!kernel.fill.empty()) share = kernel.fill.at(w);
    } else {
      share = std::pow(w / std::ceil(w), curve.wave_exponent) /
              padding(shape, curve.tile_rows, curve.tile_keys);
    }
    points.push_back(
        {static_cast<double>(shape.kv_tokens), flops / kernel_seconds / share * 1e-12});
  }
  return LogCurve(std::move(points));
}

}  // namespace herdsim

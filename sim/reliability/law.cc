#include "sim/reliability/law.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/models/gaussian.h"

namespace herdsim {
namespace {

double weibull_seconds(double mean, double k, double u) {
  return mean / std::tgamma(1 + 1 / k) * std::pow(-std::log(u), 1 / k);
}

// The quantile of a sample, linear between its points, so that a draw is not confined to what was
// seen.
double empirical_seconds(const std::vector<double>& ascending, double u) {
  const double position = (1 - u) * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, ascending.size() - 1);
  const double share = position - static_cast<double>(below);
  return ascending[below] + share * (ascending[above] - ascending[below]);
}

}  // namespace

double RandomDuration::draw_seconds(double u) const {
  if (mean_seconds <= 0) return 0;
  switch (shape) {
    case DurationShape::kConstant:
      return mean_seconds;
    case DurationShape::kExponential:
      return -std::log(u) * mean_seconds;
    case DurationShape::kLognormal: {
      const double median = mean_seconds * std::exp(-parameter * parameter / 2);
      // u = 1 is the shortest draw, as in the other laws; the quantile function needs the open
      // interval.
      const double p = std::clamp(1 - u, 0x1p-54, 1 - 0x1p-53);
      return median * std::exp(parameter * normal_quantile(p));
    }
    case DurationShape::kWeibull:
      return weibull_seconds(mean_seconds, parameter, u);
  }
  return mean_seconds;
}

double draw_gap_seconds(const ArrivalLaw& law, double mean_seconds, double u) {
  if (!(mean_seconds < std::numeric_limits<double>::infinity())) return mean_seconds;
  switch (law.shape) {
    case ArrivalShape::kExponential:
      return -std::log(u) * mean_seconds;
    case ArrivalShape::kWeibull:
      return weibull_seconds(mean_seconds, law.weibull_k, u);
    case ArrivalShape::kClustered:
      return -std::log(u) * mean_seconds / (1 - law.branching);
    case ArrivalShape::kScheduled:
      return mean_seconds;
    case ArrivalShape::kEmpirical: {
      double sum = 0;
      for (const double gap : law.gaps) sum += gap;
      const double observed_mean = sum / static_cast<double>(law.gaps.size());
      return empirical_seconds(law.gaps, u) * (mean_seconds / observed_mean);
    }
  }
  return mean_seconds;
}

GapShape shape_of_gaps(const std::vector<double>& gaps_seconds) {
  // Failures of one instant have no logarithm; a microsecond apart is as good.
  constexpr double kShortest = 1e-6;
  const auto n = static_cast<double>(gaps_seconds.size());
  double mean = 0, square = 0, mean_log = 0;
  for (const double gap : gaps_seconds) {
    mean += gap / n;
    square += gap * gap / n;
    mean_log += std::log(std::max(gap, kShortest)) / n;
  }
  // The score is rising in k.
  double low = 0.05, high = 20;
  for (int i = 0; i < 60; ++i) {
    const double k = (low + high) / 2;
    double power = 0, weighted = 0;
    for (const double gap : gaps_seconds) {
      const double x = std::pow(std::max(gap, kShortest) / mean, k);
      power += x;
      weighted += x * std::log(std::max(gap, kShortest));
    }
    (weighted / power - 1 / k - mean_log < 0 ? low : high) = k;
  }
  return {.weibull_k = low,
          .variation = std::sqrt(std::max(0.0, square - mean * mean)) / mean,
          .mean_seconds = mean};
}

}  // namespace herdsim

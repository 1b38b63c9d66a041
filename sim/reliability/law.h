// Random lengths of time, each drawn from one uniform number by its quantile function.
//
// One number a draw, monotone in it: two scenarios that share a stream then differ by what was
// changed and by nothing else (common random numbers), and a longer mean never gives a shorter
// draw.
//
//   RandomDuration repair{.shape = DurationShape::kLognormal, .mean_seconds = 43'200, .parameter =
//   0.7}; Duration d = repair.draw(stream.uniform());
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/time.h"

namespace herdsim {

enum class DurationShape : uint8_t { kConstant, kExponential, kLognormal, kWeibull };
constexpr std::array<std::string_view, 4> kDurationShapeNames = {"constant", "exponential",
                                                                 "lognormal", "weibull"};

// `parameter` is sigma of the logarithm (lognormal) or the shape k (Weibull); the mean is what is
// given whatever it is.
struct RandomDuration {
  DurationShape shape = DurationShape::kConstant;
  double mean_seconds = 0;
  double parameter = 1;

  // Requires: 0 < u <= 1. Seconds, so that callers may scale before rounding to ticks.
  double draw_seconds(double u) const;
  Duration draw(double u) const { return seconds_rounded_up(draw_seconds(u)); }
};

// How the gaps between the failures of a class are spread around their mean.
enum class ArrivalShape : uint8_t {
  kExponential,
  kWeibull,    // renewals of the whole class; k < 1: failures follow failures
  kClustered,  // exponential, and each failure is followed by another with a probability, after a
               // lag
  kScheduled,  // every 1/rate, from a random phase on
  kEmpirical,  // gaps drawn from a log
};
constexpr std::array<std::string_view, 5> kArrivalShapeNames = {
    "exponential", "weibull", "clustered", "scheduled", "empirical"};

struct ArrivalLaw {
  ArrivalShape shape = ArrivalShape::kExponential;
  double weibull_k = 0.75;
  // Of a clustered law: a failed element returns unfixed with this probability, and fails again
  // after an exponential lag. First failures are thinned by 1 - branching, so the rate stays what
  // the row says. 0.25 and half an hour give gaps that a Weibull fit calls k = 0.76 at the rate of
  // 16,384 H100s.
  double branching = 0.25;
  double mean_lag_seconds = 1800;
  // Of an empirical law: observed gaps, seconds, ascending. Scaled to the class's rate where that
  // is overridden.
  std::vector<double> gaps;
};

// A gap of mean `mean_seconds`, by one uniform number. A clustered law gives the gaps of its first
// failures.
double draw_gap_seconds(const ArrivalLaw& law, double mean_seconds, double u);

// What a series of gaps looks like: the Weibull shape of greatest likelihood (below 1: failures
// follow failures) and the coefficient of variation. Requires: two gaps or more.
struct GapShape {
  double weibull_k = 0, variation = 0, mean_seconds = 0;
};
GapShape shape_of_gaps(const std::vector<double>& gaps_seconds);

}  // namespace herdsim

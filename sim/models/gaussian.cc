#include "sim/models/gaussian.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace herdsim {
namespace {

template <size_t N>
double polynomial(const std::array<double, N>& c, double x) {
  double sum = 0;
  for (size_t i = N; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), PPND16: lowest power first.
constexpr std::array<double, 8> kCentreNumerator = {
    3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
    3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr std::array<double, 8> kCentreDenominator = {1.0,
                                                      4.2313330701600911252e1,
                                                      6.8718700749205790830e2,
                                                      5.3941960214247511077e3,
                                                      2.1213794301586595867e4,
                                                      3.9307895800092710610e4,
                                                      2.8729085735721942674e4,
                                                      5.2264952788528545610e3};
constexpr std::array<double, 8> kMiddleNumerator = {
    1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
    3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
    2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array<double, 8> kMiddleDenominator = {1.0,
                                                      2.05319162663775882187e0,
                                                      1.67638483018380384940e0,
                                                      6.89767334985100004550e-1,
                                                      1.48103976427480074590e-1,
                                                      1.51986665636164571966e-2,
                                                      5.47593808499534494600e-4,
                                                      1.05075007164441684324e-9};
constexpr std::array<double, 8> kTailNumerator = {
    6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
    2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
    2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr std::array<double, 8> kTailDenominator = {1.0,
                                                    5.99832206555887937690e-1,
                                                    1.36929880922735805310e-1,
                                                    1.48753612908506148525e-2,
                                                    7.86869131145613259100e-4,
                                                    1.84631831751005468180e-5,
                                                    1.42151175831644588870e-7,
                                                    2.04426310338993978564e-15};

// The quantile of an upper tail probability below 0.075, given as its logarithm, so that it may be
// far below 1e-308.
double upper_tail_quantile(double log_tail) {
  const double r = std::sqrt(-log_tail);
  if (r <= 5) {
    return polynomial(kMiddleNumerator, r - 1.6) / polynomial(kMiddleDenominator, r - 1.6);
  }
  return polynomial(kTailNumerator, r - 5) / polynomial(kTailDenominator, r - 5);
}

}  // namespace

double normal_cdf(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kCentreNumerator, r) / polynomial(kCentreDenominator, r);
  }
  return q < 0 ? -upper_tail_quantile(std::log(p)) : upper_tail_quantile(std::log1p(-p));
}

double normal_maximum_quantile(double p, int64_t n) {
  // The n-th root of p is next to one; its distance from one keeps the digits.
  const double log_root = std::log(p) / static_cast<double>(n);
  const double tail = -std::expm1(log_root);
  return tail < 0.075 ? upper_tail_quantile(std::log(tail)) : normal_quantile(std::exp(log_root));
}

double expected_normal_maximum(int64_t n) {
  if (n == 1) return 0;
  // Midpoints of the maximum's own quantile function: smooth inside, with tails that fall off
  // faster than any power.
  constexpr int kPoints = 20'000;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) sum += normal_maximum_quantile((i + 0.5) / kPoints, n);
  return sum / kPoints;
}

}  // namespace herdsim

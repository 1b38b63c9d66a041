#include "sim/models/queueing.h"

#include <cmath>
#include <limits>

namespace herdsim {
namespace {

double log_mass(double mean, int64_t k) {
  const double x = static_cast<double>(k);
  return x * std::log(mean) - mean - std::lgamma(x + 1);
}

// Solves f(x) = target for a rising f on [low, high].
template <class Function>
double bisect(Function f, double target, double low, double high) {
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) < target ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double poisson_cdf(double mean, int64_t k) {
  if (k < 0) return 0;
  if (mean <= 0) return 1;
  double sum = 0;
  for (int64_t i = 0; i <= k; ++i) sum += std::exp(log_mass(mean, i));
  return std::fmin(sum, 1.0);
}

double poisson_tail(double mean, int64_t k) {
  if (k < 0) return 1;
  if (mean <= 0) return 0;
  // Summing the tail itself keeps its relative precision where the cdf has none left.
  double sum = 0;
  const double mode = std::fmax(mean, static_cast<double>(k));
  for (int64_t i = k + 1;; ++i) {
    const double term = std::exp(log_mass(mean, i));
    sum += term;
    if (static_cast<double>(i) > mode && term < 1e-18 * (sum + 1e-300)) break;
  }
  return std::fmin(sum, 1.0);
}

int64_t poisson_quantile(double mean, double probability) {
  if (mean <= 0) return 0;
  double sum = 0;
  for (int64_t k = 0;; ++k) {
    const double term = std::exp(log_mass(mean, k));
    sum += term;
    if (sum >= probability) return k;
    // Rounding can leave the sum a hair below a probability next to one.
    if (static_cast<double>(k) > mean && term < 1e-18) return k;
  }
}

Band poisson_band(double count, double confidence) {
  const double half = (1 - confidence) / 2;
  const int64_t k = std::llround(count);
  const double ceiling = count + 20 * std::sqrt(count + 1) + 40;
  Band band;
  if (k > 0) {
    band.low = bisect([&](double mean) { return poisson_tail(mean, k - 1); }, half, 0, count);
  }
  band.high =
      bisect([&](double mean) { return 1 - poisson_cdf(mean, k); }, 1 - half, count, ceiling);
  return band;
}

double mean_wait(double arrivals_per_second, double mean_service, double squared_variation,
                 int64_t servers) {
  const double offered = arrivals_per_second * mean_service;
  const double c = static_cast<double>(servers);
  if (offered <= 0) return 0;
  if (offered >= c) return std::numeric_limits<double>::infinity();
  // Erlang B by its stable recursion, then Erlang C.
  double blocking = 1;
  for (int64_t i = 1; i <= servers; ++i) {
    blocking = offered * blocking / (static_cast<double>(i) + offered * blocking);
  }
  const double waits = blocking / (1 - (offered / c) * (1 - blocking));
  return waits * mean_service / (c - offered) * (1 + squared_variation) / 2;
}

double shared_storage_wait(double writes_per_second, double mean_service,
                           double squared_variation) {
  return mean_wait(writes_per_second, mean_service, squared_variation, 1);
}

double lognormal_squared_variation(double sigma) { return std::expm1(sigma * sigma); }

}  // namespace herdsim

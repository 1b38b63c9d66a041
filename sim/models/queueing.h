// Spares and shared storage as queues: closed forms with a stated valid range.
//
// Nodes under repair are the busy servers of an M/G/infinity queue: Poisson, whatever the law of
// the repair time. So the chance that a pool of S spares is empty is a Poisson tail:
//   2,048 nodes at 3.79 failures a 1,000 node-days, 40.4 h to mend each: mean 13.1 away, P99 22,
//   P99.9 26
//
// With c technicians repairs wait: M/G/c, by Lee and Longton's approximation from M/M/c (exact for
// exponential repairs).
#pragma once

#include <cstdint>

namespace herdsim {

// P(X <= k) and P(X > k) for X ~ Poisson(mean); sums of logarithms, no overflow. Requires: mean >=
// 0.
double poisson_cdf(double mean, int64_t k);
double poisson_tail(double mean, int64_t k);
// Smallest k with P(X <= k) >= probability. Requires: 0 <= probability < 1.
int64_t poisson_quantile(double mean, double probability);

// The exact (Garwood) confidence band of a Poisson mean of which `count` events were seen, by
// bisection.
struct Band {
  double low = 0, high = 0;
};
Band poisson_band(double count, double confidence = 0.95);

// Mean wait for one of c servers: M/M/c by Erlang C, times (1 + C_s^2)/2 for other service laws.
// Ensures: infinite where arrivals outpace the servers.
double mean_wait(double arrivals_per_second, double mean_service, double squared_variation,
                 int64_t servers);

// Pollaczek-Khinchine for one shared server (storage that several jobs write to): lambda E[S^2] / 2
// (1 - rho).
double shared_storage_wait(double writes_per_second, double mean_service, double squared_variation);

// Squared coefficient of variation of a lognormal: e^{sigma^2} - 1; sigma = 1 gives 1.72.
double lognormal_squared_variation(double sigma);

}  // namespace herdsim

// The normal law where a synchronous job needs it: quantiles for draws, and the largest of many for
// stragglers.
//
// A synchronous step ends with its slowest rank. If speeds spread by sigma, n ranks run at the pace
// of the expected largest of n normals: 3.97 sigma at 16,384, 3.44 sigma at 2,048. A spread of 1 %
// costs 4 % there.
#pragma once

#include <cstdint>

namespace herdsim {

// P(Z <= z).
double normal_cdf(double z);
// Inverse of normal_cdf to about 1e-15, Wichura's AS 241. Requires: 0 < p < 1.
double normal_quantile(double p);
// E[max of n independent standard normals], by quadrature of its quantile function. Requires: n
// >= 1.
double expected_normal_maximum(int64_t n);
// The largest of n standard normals whose cdf is at p: a draw of the maximum from one uniform
// number. Requires: 0 < p < 1, n >= 1.
double normal_maximum_quantile(double p, int64_t n);

}  // namespace herdsim

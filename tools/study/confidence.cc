#include "tools/study/confidence.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/check.h"

namespace herdsim {

Interval mean_interval(std::span<const double> values, double confidence) {
  HERDSIM_CHECK(!values.empty()) << "the mean of nothing";
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return {mean, std::numeric_limits<double>::infinity()};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const boost::math::students_t law(n - 1);
  const double t = boost::math::quantile(boost::math::complement(law, (1 - confidence) / 2));
  return {mean, t * std::sqrt(squares / (n - 1) / n)};
}

}  // namespace herdsim

// How sure a mean is.
#pragma once

#include <span>

namespace herdsim {

struct Interval {
  double mean = 0;
  double half_width = 0;  // infinite for one value

  bool excludes_zero() const { return mean - half_width > 0 || mean + half_width < 0; }
};

// Student's interval of the mean of independent draws. Requires: not empty.
Interval mean_interval(std::span<const double> values, double confidence = 0.95);

}  // namespace herdsim

// From where to where an assumed rate may be, as what multiplies it.
//
// No publication counts these failures a part-hour. Where one bounds them, the source says how; the
// rest is a guess of its width. Sensitivity studies vary a rate in its range; the rate itself stays
// what the table says.
#pragma once

#include <string_view>
#include <vector>

namespace herdsim {

struct RateRange {
  std::string_view failure_class;
  double low = 1, high = 1;  // over the rate of the table
  std::string_view source;
};

// Of every class whose rate is assumed.
const std::vector<RateRange>& assumed_rate_ranges();

}  // namespace herdsim

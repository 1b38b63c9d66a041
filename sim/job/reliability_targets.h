// Published figures of reliability that the models and the campaign are held to: one row a figure,
// with the bounds it must lie in, what this program says, and where it was printed. `herdsim
// validate --suite reliability` prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

struct ReliabilityTarget {
  std::string_view id;  // "llama3-unexpected"
  std::string_view what;
  double published = 0;
  double low = 0, high = 0;  // bounds, inclusive
  double predicted = 0;
  std::string_view unit;
  std::string_view source;

  bool holds() const { return low <= predicted && predicted <= high; }
};

// Complexity: some 5,000 replica campaigns, a few seconds.
std::vector<ReliabilityTarget> reliability_targets(int threads);

}  // namespace herdsim

// Ways to notice that results are wrong. One row a detector: what it can see, how soon, and what it
// costs.
//
// A checksum guards bytes at rest or on the wire. A GPU that computes 2 + 2 = 5 then checksums the
// 5, so such a detector has recall 0 for wrong arithmetic, whatever its recall for transfers;
// silent corruption in training is mostly the former.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/provenance.h"
#include "sim/reliability/law.h"

namespace herdsim {

struct CorruptionDetector {
  std::string_view name, help;
  double arithmetic_recall = 0;  // share of wrong results that it ever notices
  double transfer_recall = 0;    // share of corrupted bytes
  RandomDuration latency;        // onset to alarm; mean 0: the latency of the failure class
  double step_overhead = 0;      // share of a step
  Evidence evidence = Evidence::kAssumed;
  std::string_view source;
};

// Of all corruptions, those of arithmetic. Assumed: nobody published the split; one GPU's logic is
// usually to blame.
constexpr double kArithmeticShare = 0.9;

const std::vector<CorruptionDetector>& corruption_detectors();
const CorruptionDetector* find_corruption_detector(std::string_view name);

}  // namespace herdsim

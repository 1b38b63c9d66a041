// What differs between two profiles, curve by curve.
#pragma once

#include <string>
#include <vector>

#include "sim/models/device_profile.h"

namespace herdsim {

struct ProfileDifference {
  std::string field;  // "gemm[bf16]", "attention[fa3] forward causal 128", "device.sms"
  std::string
      detail;  // in words: "only in the second", "132 and 108", "ratio 0.91 to 1.02, median 0.98"
  // Of a number or curve in both: the ratio second / first farthest from one; 1 where only words
  // differ.
  double farthest_ratio = 1;
};

// Empty where the two hold the same numbers. Curves are compared as functions, at the points of
// both, so that a curve with other points is no difference by itself; sources count as words.
std::vector<ProfileDifference> diff_profiles(const DeviceProfile& first,
                                             const DeviceProfile& second);

}  // namespace herdsim

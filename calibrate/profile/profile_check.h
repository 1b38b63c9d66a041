// A profile against measurements: how well it predicts kernels and collectives that somebody timed.
#pragma once

#include <string>
#include <vector>

#include "calibrate/profile/error_summary.h"
#include "calibrate/profile/measurements.h"
#include "sim/models/device_profile.h"

namespace herdsim {

struct ProfileCheck {
  std::vector<ErrorSummary> errors;  // by kind and size, alphabetically
  size_t extrapolated = 0;  // rows outside the profile's ranges, in the errors all the same
  std::vector<std::string> not_compared;  // what the profile has nothing for, once each
};

// An attention row is compared with the profile's kernel of that name, or whose name its own ends
// with
// ("vllm_flash_attn_fa3" is "fa3").
ProfileCheck check_profile(const DeviceProfile& profile, const Measurements& measurements);

// Time of a collective by its measured curve: linear in the size between the points; beyond the
// outermost ones on the line through the two points there, and below never less than half the first
// point's time.
double collective_seconds(const CollectiveCurve& curve, Bytes size);

}  // namespace herdsim

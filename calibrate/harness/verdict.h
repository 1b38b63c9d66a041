// Each result of a calibration beside what the device can do at most.
#pragma once

#include <string>

#include "calibrate/harness/calibration.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// One line a probe: time, rate, the physical bound and the share of it, how the series was. The
// bound is the peak of the data type, the link's rate where it is known, else the memory's: where
// switches add up what passes them, a collective may exceed its link. Then what was not measured,
// one line a kind and reason, and by what copies between devices went.
// Requires: `profile` is made of these results.
std::string verdict_table(const DeviceProfile& profile, const Backend& backend,
                          const CalibrationResult& calibration);

}  // namespace herdsim

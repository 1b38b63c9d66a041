// Results of a calibration as a profile.
//
// Products become the efficiency surface of calibrate/fit, other curves keep what was measured,
// made to never take less time for more work. What no probe measured is taken from its nearest kin
// and labelled assumed.
#pragma once

#include <string>
#include <vector>

#include "calibrate/harness/calibration.h"
#include "sim/models/device_profile.h"

namespace herdsim {

struct ProfileRequest {
  std::string name;    // a catalogue name
  std::string method;  // date, ranks, stopping rule: what every source of the profile says
};

// Throws: SpecError naming what was not measured, where there is no product, no attention forward
// and backward, no stream or no launch.
DeviceProfile profile_of_results(const ProfileRequest& request, const Backend& backend,
                                 const CalibrationResult& calibration);

}  // namespace herdsim

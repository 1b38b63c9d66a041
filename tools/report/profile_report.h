// What `herdsim profile show|check|diff` prints.
#pragma once

#include <string>

#include "calibrate/profile/profile_check.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// The device, what its kernels and collectives reach at telling sizes, and where every curve comes
// from.
std::string profile_show_text(const DeviceProfile& profile);

// Errors by kind and size, what was not compared, how many rows lay outside the profile's ranges.
std::string profile_check_text(const DeviceProfile& profile, const ProfileCheck& check);

// One line a difference; "no differences" without any.
std::string profile_diff_text(const DeviceProfile& first, const DeviceProfile& second);

}  // namespace herdsim

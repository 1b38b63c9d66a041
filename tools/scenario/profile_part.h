// The device profile of a scenario: of the catalogue, a file, in place, or any of the first two
// with fields changed.
#pragma once

#include <string>
#include <vector>

#include "sim/models/device_profile.h"
#include "tools/scenario/field_origins.h"

namespace herdsim::spec {
class Profile;
}

namespace herdsim {

// Faults: no such profile, and whatever calibrate/profile finds wrong, under "profile.".
DeviceProfile device_profile_of(const spec::Profile& part, SpecReport* report);

// Of curves that the user brought and no step looks at.
std::vector<std::string> profile_warnings(const spec::Profile& part, const DeviceProfile& profile);

}  // namespace herdsim

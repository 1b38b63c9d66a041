// The door to protobuf: text of profile.proto into a checked DeviceProfile.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/models/device_profile.h"

namespace herdsim {

// The profile that `base: "..."` names.
using BaseLoader = std::function<DeviceProfile(const std::string& base)>;

// Throws: SpecError with every fault of the text; `file` is named in each.
DeviceProfile profile_from_text(std::string_view text, const std::string& file,
                                const BaseLoader& load_base);

}  // namespace herdsim

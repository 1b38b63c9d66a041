// Calibration profiles as files: text-format protobuf (profile.proto), read into a DeviceProfile
// and written from one.
//
//   DeviceProfile h100 = load_profile("h100-sxm5-80gb");     // of the catalogue, embedded in the
//   program DeviceProfile mine = load_profile("./my_gpu.textproto");
//
// Loading checks everything: unknown fields and units, missing or negative numbers, lists of
// unequal length, axes that do not increase, curves on which more work takes less time, duplicate
// kernels. Every fault is reported with file, line and column, not only the first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/device_profile.h"

namespace herdsim {

// Of the embedded catalogue, in alphabetical order.
const std::vector<std::string>& profile_names();

// The text of a catalogue profile. Throws: SpecError with the nearest name.
std::string_view profile_text(std::string_view name);

// A catalogue name, or a file where the argument holds a '/' or ends in ".textproto".
// Throws: SpecError
DeviceProfile load_profile(const std::string& name_or_path);

// `file` is only named in faults. Throws: SpecError
DeviceProfile load_profile_text(std::string_view text, const std::string& file);

// Ensures: load_profile_text(save_profile_text(p)) is p up to the printed digits (five significant
// ones for curves), and saving that again gives the same text.
std::string save_profile_text(const DeviceProfile& profile);

// A profile that stands on `base`, a catalogue name or file, and brings these collectives of its
// own. Requires: `name` is a catalogue name.
std::string save_collectives_text(const std::string& name, const std::string& base,
                                  const std::vector<CollectiveCurve>& curves);

}  // namespace herdsim

// Names that other folders own and a scenario refers to. The one place where the scenario language
// meets their tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/models/device_profile.h"

namespace herdsim {

enum class NameKind : uint8_t { kRouting, kReliability, kCheckpointPolicy, kRecoveryPolicy };

// Every name of a kind, in the order of its table.
std::vector<std::string> known_names(NameKind kind);

// A catalogue name, or a file; a relative one is looked up in `folder`. Throws: SpecError
DeviceProfile find_profile(const std::string& name_or_path, const std::string& folder);

}  // namespace herdsim

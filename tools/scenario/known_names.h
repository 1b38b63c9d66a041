// Names that other folders own and a scenario refers to. The one place where the scenario language
// meets their tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace herdsim {

enum class NameKind : uint8_t { kRouting, kBuffers };

// Every name of a kind, in the order of its table.
std::vector<std::string> known_names(NameKind kind);

}  // namespace herdsim

#include "sim/base/fingerprint.h"

#include <fmt/format.h>

namespace herdsim {

std::string Fingerprint::text() const { return fmt::format("{:016x}", state_); }

}  // namespace herdsim

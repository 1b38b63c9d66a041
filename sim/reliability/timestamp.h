// Times of day in logs, as ISO 8601 writes them: 2024-05-01T06:30:00Z, 2024-05-01
// 08:30:00.25+02:00.
#pragma once

#include <optional>
#include <string_view>

namespace herdsim {

// Seconds since 1970 of UTC. Without a zone it is one of UTC; none where it is no such time.
std::optional<double> seconds_of_timestamp(std::string_view text);

}  // namespace herdsim

// What a terminal gets and a file does not: colour.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace herdsim {

// Standard output or standard error, on a terminal.
bool is_terminal(const std::ostream& stream);

enum class Colour : uint8_t { kRed, kYellow };

// `text` as it is, unless the stream is a terminal that takes colour: no NO_COLOR that is set and
// not empty (no-color.org), no TERM=dumb.
std::string coloured(std::string_view text, Colour colour, const std::ostream& stream);

}  // namespace herdsim

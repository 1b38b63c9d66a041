// A profile small enough to read at a glance, with every part a profile has; tests change words of
// it.
#pragma once

#include <string>
#include <string_view>

namespace herdsim {

std::string small_profile_text();

// The text with the first `from` replaced. Checks that there is one.
std::string with(std::string text, std::string_view from, std::string_view to);

}  // namespace herdsim

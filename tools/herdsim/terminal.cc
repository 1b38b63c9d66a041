#include "tools/herdsim/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace herdsim {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_terminal(const std::ostream& stream) {
  if (&stream == &std::cout) return isatty(STDOUT_FILENO) != 0;
  return &stream == &std::cerr && isatty(STDERR_FILENO) != 0;
}

std::string coloured(std::string_view text, Colour colour, const std::ostream& stream) {
  if (!is_terminal(stream) || !environment("NO_COLOR").empty() || environment("TERM") == "dumb") {
    return std::string(text);
  }
  return fmt::format("\x1b[{}m{}\x1b[0m", colour == Colour::kRed ? 31 : 33, text);
}

}  // namespace herdsim

// What is wrong with a command line that the library which parses it calls something else, or lets through.
#pragma once

#include <optional>

#include "sim/base/error.h"
#include "tools/herdsim/command.h"

namespace herdsim {

// Of a command line that does not parse: the first option that the command does not have, or operand that is one too
// many.
std::optional<Fault> unknown_word(int argc, const char* const* argv, const Command& command);

// Throws: SpecError for options that contradict each other or would change nothing.
void check_options(const Command& command, const Options& options);

}  // namespace herdsim

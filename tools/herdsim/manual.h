// Manual pages (man(7) macros) from the table of commands, as `--help` is: herdsim(1) and a page a
// command.
#pragma once

#include <string>

#include "tools/herdsim/command.h"

namespace herdsim {

// herdsim(1): the commands, exit status, environment, files.
std::string manual_page();
// herdsim-step(1): synopsis and options of one.
std::string manual_page(const Command& command);

// `man [COMMAND]` prints a page, `man -o FOLDER` writes them all into a folder that exists.
int run_man_command(const Options& options, Streams streams);

}  // namespace herdsim

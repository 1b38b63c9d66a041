// profile: what one device does, as a file.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

// show, check, diff, import: each a row of the table in the .cc.
int run_profile_command(const Options& options, Streams streams);

}  // namespace herdsim

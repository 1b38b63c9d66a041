#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

// `herdsim validate`: a table of runs, or the catalogue's published scenarios.
int run_validate_command(const Options& options, Streams streams);

}  // namespace herdsim

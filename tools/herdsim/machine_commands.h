// topology: the machine.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_topology_command(const Options& options, Streams streams);

}  // namespace herdsim

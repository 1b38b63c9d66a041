// topology, profile: the machine and its costs.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_topology_command(const Options& options, Streams streams);
int run_profile_command(const Options& options, Streams streams);

}  // namespace herdsim

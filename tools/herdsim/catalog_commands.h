// catalog, help: what there is.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_catalog_command(const Options& options, Streams streams);
int run_help_command(const Options& options, Streams streams);

}  // namespace herdsim

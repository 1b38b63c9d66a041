// run: weeks of training under failures.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_run_command(const Options& options, Streams streams);
int run_rates_command(const Options& options, Streams streams);

}  // namespace herdsim

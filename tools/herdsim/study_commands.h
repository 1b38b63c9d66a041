// sweep: many simulations of one scenario. plan: the best way to spread a model over GPUs.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_sweep_command(const Options& options, Streams streams);
int run_plan_command(const Options& options, Streams streams);

}  // namespace herdsim

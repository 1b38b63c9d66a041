// step, compare, explain, spec.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_step_command(const Options& options, Streams streams);
int run_compare_command(const Options& options, Streams streams);
int run_explain_command(const Options& options, Streams streams);
int run_spec_command(const Options& options, Streams streams);

}  // namespace herdsim

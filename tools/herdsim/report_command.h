// report: a page about a run database.
#pragma once

#include "tools/herdsim/command.h"

namespace herdsim {

int run_report_command(const Options& options, Streams streams);

}  // namespace herdsim

#include "tools/herdsim/catalog_commands.h"
#include "tools/herdsim/command.h"
#include "tools/herdsim/machine_commands.h"
#include "tools/herdsim/run_commands.h"
#include "tools/herdsim/step_commands.h"

namespace herdsim {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {.name = "step",
       .help = "One optimizer step: time, MFU, where the time goes, peak memory",
       .operands = "SCENARIO",
       .least_operands = 1,
       .most_operands = 1,
       .options = kSeed | kDb | kTrace | kFold | kRequire,
       .run = &run_step_command},
      {.name = "run",
       .help = "Weeks of training under failures: effective training time",
       .operands = "SCENARIO",
       .least_operands = 1,
       .most_operands = 1,
       .options = kSeed | kThreads | kRequire | kHorizon,
       .run = &run_run_command},
      {.name = "explain",
       .help = "The costed kernels and transfers of a step, or why two differ",
       .operands = "SCENARIO [OTHER]",
       .least_operands = 1,
       .most_operands = 2,
       .options = kSeed | kFold,
       .run = &run_explain_command},
      {.name = "compare",
       .help = "Two or more scenarios side by side",
       .operands = "SCENARIO...",
       .least_operands = 2,
       .most_operands = 26,
       .options = kSeed | kFold,
       .run = &run_compare_command},
      {.name = "topology",
       .help = "Nodes, links, bisection, oversubscription, failure domains",
       .operands = "CLUSTER",
       .least_operands = 1,
       .most_operands = 1,
       .options = kOutput,
       .run = &run_topology_command},
      {.name = "profile",
       .help = "show, check or diff calibration profiles",
       .operands = "COMMAND PROFILE [OTHER]",
       .least_operands = 1,
       .most_operands = 3,
       .options = 0,
       .run = &run_profile_command},
      {.name = "spec",
       .help = "A scenario with every default, and where each value comes from",
       .operands = "SCENARIO",
       .least_operands = 1,
       .most_operands = 1,
       .options = kSeed | kEffective,
       .run = &run_spec_command},
      {.name = "catalog",
       .help = "Every named scenario, model, cluster, profile, schedule, ...",
       .operands = "[KIND]",
       .least_operands = 0,
       .most_operands = 8,
       .options = 0,
       .run = &run_catalog_command},
      {.name = "help",
       .help = "The language and the tables: spec, topologies, schedules, ...",
       .operands = "TOPIC",
       .least_operands = 1,
       .most_operands = 1,
       .options = 0,
       .run = &run_help_command},
  };
  return kCommands;
}

}  // namespace herdsim

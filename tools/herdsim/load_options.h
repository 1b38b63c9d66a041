// What several commands do with their options.
#pragma once

#include <string>
#include <vector>

#include "tools/herdsim/command.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

// Throws: SpecError with this one fault, for an option or operand.
[[noreturn]] void reject(std::string field, std::string problem, std::string allowed,
                         std::string nearest = "");

// The scenario of one operand with --set and --seed applied; its warnings go to the error stream.
Scenario scenario_of(const Options& options, const std::string& name);

// The scenarios of all operands. One that reads FIELD=VALUE, several joined with ';', is the first
// operand with these fields, and is called so.
std::vector<Scenario> scenarios_of(const Options& options);

// --threads, or one a core.
int threads_of(const Options& options);

// "0-127,4096" or "all" as ranks; the default sample for "".
// Throws: SpecError naming the option, for text that is no such list or ranks beyond the job.
std::vector<RankId> ranks_of(const std::string& text, const Scenario& scenario);

// Throws: SpecError naming the option, for text that is no size or nothing.
Bytes trace_budget(const Options& options);

// Each warning on a line of its own, unless --quiet.
void print_warnings(const std::vector<std::string>& warnings, const Options& options, Streams streams);

// Checks --require conditions such as "mfu>=0.4" against named figures; prints those that fail.
// Returns kExitDone or kExitOutOfBounds. Throws: SpecError for an unknown figure or form.
struct Figure {
  std::string name;
  double value;
};
int check_requirements(const std::vector<std::string>& conditions, const std::vector<Figure>& figures,
                       Streams streams);

}  // namespace herdsim

// What several commands do with their options.
#pragma once

#include <span>
#include <string>
#include <string_view>
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

// A figure that --require may name, of a step or a run.
template <class Result>
struct FigureRow {
  std::string_view name;
  double (*of)(const Result&);
};

// A --require condition such as "mfu>=0.4".
struct Requirement {
  std::string text;
  size_t figure = 0;  // index of its row
  bool at_least = true;
  double bound = 0;
};

// Throws: SpecError with every condition of an unknown figure or form: before anything is simulated or printed.
std::vector<Requirement> requirements_of(const Options& options, const std::vector<std::string>& figures);

// Prints the requirements that do not hold. Returns kExitDone or kExitOutOfBounds.
int check_requirements(const std::vector<Requirement>& requirements, const std::vector<double>& figures,
                       Streams streams);

template <class Result>
std::vector<Requirement> requirements_of(const Options& options, std::span<const FigureRow<Result>> rows) {
  std::vector<std::string> names;
  for (const FigureRow<Result>& row : rows) names.emplace_back(row.name);
  return requirements_of(options, names);
}

template <class Result>
int check_requirements(const std::vector<Requirement>& requirements, std::span<const FigureRow<Result>> rows,
                       const Result& result, Streams streams) {
  std::vector<double> figures;
  for (const FigureRow<Result>& row : rows) figures.push_back(row.of(result));
  return check_requirements(requirements, figures, streams);
}

}  // namespace herdsim

// A command of the program is a row: its name, its help, which options it takes, and what it does. The command line parser,
// `--help` and the tests read the table; a new command is one file and one row.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/herdsim/options.h"

namespace herdsim {

// Options beyond --set, --format, --quiet and --help, which every command takes.
enum OptionFlag : uint32_t {
  kSeed = 1 << 0,
  kDb = 1 << 1,
  kTrace = 1 << 2,
  kFold = 1 << 3,
  kThreads = 1 << 4,
  kRequire = 1 << 5,
  kEffective = 1 << 6,
  kHorizon = 1 << 7,  // --days, --tokens, --replicas
  kOutput = 1 << 8,
  kSuite = 1 << 9,
  kSweepAxes = 1 << 10,
  kTable = 1 << 11,
  kPlan = 1 << 12,  // what is planned, for how long and for how much
  kTimeline = 1 << 13,    // --trace of weeks, which has no ranks
  kSizes = 1 << 14,       // --gpus beside the scenario's own, --step-s
  kDrawing = 1 << 15,     // --graphviz
  kConditions = 1 << 16,  // --no-fold of weeks, whose steps differ by the machine's condition
  kNoSets = 1 << 17,      // no --set: what it prints is of no scenario
  kNoFormat = 1 << 18,    // no --format: what it prints is in a language of its own
};

constexpr int kExitDone = 0;
constexpr int kExitOutOfBounds = 1;
constexpr int kExitBadInput = 2;
constexpr int kExitInternal = 70;

struct Streams {
  std::ostream& out;  // the answer
  std::ostream& err;  // progress, warnings, errors
};

struct Command {
  std::string_view name;
  std::string_view help;
  std::string_view operands;  // as usage prints them: "SCENARIO", "A [B]"
  size_t least_operands = 0, most_operands = 0;
  uint32_t options = 0;
  // Returns an exit status. Throws: SpecError for wrong input.
  int (*run)(const Options&, Streams) = nullptr;
};

// In the order of `herdsim --help`.
const std::vector<Command>& commands();

// An option as `--help` shows it: what completion and manual pages are made of.
struct OptionShape {
  std::vector<std::string> names;  // "-o", "--output"
  std::string value;               // "FILE"; empty: a switch
  std::string help;
};
std::vector<OptionShape> option_shapes(const Command& command);

// Null where there is none of that name.
const Command* find_command(std::string_view name);

// What `herdsim --help` and `herdsim COMMAND --help` print.
std::string usage();
std::string usage_of(const Command& command);

// Parses and runs. Throws: what the command throws, and SpecError for a command line that is wrong.
int parse_and_run(int argc, const char* const* argv, Streams streams);

// The same with errors reported: all of main() but the process. Never throws.
int run_command_line(int argc, const char* const* argv, Streams streams);

}  // namespace herdsim

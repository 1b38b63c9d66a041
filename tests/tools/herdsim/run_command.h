// Runs a command line in this process and keeps what it printed.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "tools/herdsim/command.h"

namespace herdsim {

struct CommandOutput {
  int status = 0;
  std::string out, err;
};

inline CommandOutput run_command(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"herdsim"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out, err;
  CommandOutput result;
  result.status = run_command_line(static_cast<int>(argv.size()), argv.data(), {out, err});
  result.out = out.str();
  result.err = err.str();
  return result;
}

}  // namespace herdsim

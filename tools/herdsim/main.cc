#include <iostream>

#include "tools/herdsim/command.h"
#include "tools/simulation/process_memory.h"

int main(int argc, char** argv) {
  herdsim::keep_freed_memory();
  return herdsim::run_command_line(argc, argv, {std::cout, std::cerr});
}

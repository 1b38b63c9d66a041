#include <csignal>
#include <iostream>

#include "tools/herdsim/command.h"
#include "tools/simulation/process_memory.h"

int main(int argc, char** argv) {
  herdsim::keep_freed_memory();
  // A file that may not grow is then an error of the write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  return herdsim::run_command_line(argc, argv, {std::cout, std::cerr});
}

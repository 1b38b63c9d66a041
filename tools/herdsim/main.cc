#include <iostream>

#include "tools/herdsim/command.h"

int main(int argc, char** argv) {
  return herdsim::run_command_line(argc, argv, {std::cout, std::cerr});
}

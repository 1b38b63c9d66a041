// Small jobs of every kind: each way that ranks can differ, and each way that a step can be built.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/executor/planned_job.h"

namespace herdsim {

struct JobCase {
  std::string name;
  std::string base;
  std::vector<std::string> sets;

  Scenario scenario() const { return load_scenario(base, sets); }
};

// Thirty-odd named cases, then every schedule row and every sharding on an uneven machine.
std::vector<JobCase> job_cases();

}  // namespace herdsim

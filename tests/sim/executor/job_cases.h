// Small jobs of every kind: each way that ranks can differ, and each way that a step can be built.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/executor/planned_job.h"

namespace herdsim {

struct JobCase {
  JobCase(std::string its_name, const std::string& base, const std::vector<std::string>& sets)
      : name(std::move(its_name)),
        loaded(std::make_shared<const Scenario>(load_scenario(base, sets))) {}

  const Scenario& scenario() const { return *loaded; }

  std::string name;
  std::shared_ptr<const Scenario> loaded;  // once: reading a scenario takes longer than a step of most of them
};

// Thirty-odd named cases, then every schedule row and every sharding on an uneven machine.
const std::vector<JobCase>& job_cases();

}  // namespace herdsim

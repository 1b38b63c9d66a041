// What to change to make a scenario fit its GPUs' memory: each change is tried, alone and then with
// full recomputation, and those that fit are named as --set would write them.
//
//   memory_remedy(load_scenario("llama3-405b-16384", {"parallel.tp=4"}))
//     -> "fits with training.recompute=FULL (62.1 GB), with parallel.shard=ZERO3 (79.0 GB)"
#pragma once

#include <string>

#include "tools/scenario/scenario.h"

namespace herdsim {

// One line without a full stop. Where weights, gradients and optimizer state are more than the
// memory of all GPUs together, it says so and how many GPUs hold them: no plan can help.
std::string memory_remedy(const Scenario& scenario);

}  // namespace herdsim

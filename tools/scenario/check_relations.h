// The rules between fields of a scenario; ranges of single fields have been checked before
// (spec_layers.h).
#pragma once

#include <string>
#include <vector>

#include "tools/scenario/field_origins.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// Adds a fault for each broken rule whose fields are sound in themselves, and a warning for what is
// allowed but unusual.
void check_relations(const Scenario& scenario, SpecReport* report,
                     std::vector<std::string>* warnings);

// The part of it that concerns a cluster alone; `prefix` is "cluster." or "".
void check_cluster(const ClusterSpec& cluster, const std::string& prefix, SpecReport* report);

}  // namespace herdsim

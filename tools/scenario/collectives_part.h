// The part of a scenario that says how collectives run.
#pragma once

#include <vector>

#include "sim/opgraph/collective_rules.h"
#include "tools/scenario/field_origins.h"
#include "topologies/cluster.h"

namespace herdsim::spec {
class Scenario;
}  // namespace herdsim::spec

namespace herdsim {

// Adds a fault for each rule that no collective could follow. Requires: every number is within its
// range.
std::vector<CollectiveRule> read_collectives(const spec::Scenario& message,
                                             const ClusterSpec& cluster, SpecReport* report);

}  // namespace herdsim

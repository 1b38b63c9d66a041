// Messages and values of the machine: its fabric, parts that are degraded, the store's network. A part of
// spec_values.h, whose rules hold here.
#pragma once

#include "tools/scenario/scenario.h"

namespace herdsim::spec {
class Cluster;
}  // namespace herdsim::spec

namespace herdsim {

// But for its name, topology and size, which have no default.
void to_message(const ClusterSpec& cluster, spec::Cluster* message);
// Requires: every number is within its range.
ClusterSpec cluster_from_message(const spec::Cluster& message);

}  // namespace herdsim

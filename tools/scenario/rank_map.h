// The file of cluster.placement RANK_MAP: the GPU of each rank.
#pragma once

#include <string>

#include "tools/scenario/field_origins.h"
#include "topologies/cluster.h"

namespace herdsim {

// Reads `file` into the cluster where its placement is a rank map. A file that is missing or no
// list of whole numbers, a placement without a file and a file without the placement are faults of
// the field `path`.
void read_rank_map(const std::string& file, const std::string& path, ClusterSpec& cluster,
                   SpecReport* report);

}  // namespace herdsim

// Groups and sizes for tests of collectives.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/collective.h"

namespace herdsim {

inline GroupShape shape(int64_t nodes, int64_t ranks_per_node, HopClass hop = HopClass::kSamePod) {
  GroupShape group{.ranks = nodes * ranks_per_node, .nodes = nodes};
  if (nodes > 1) {
    group.farthest = hop;
    group.edges[static_cast<size_t>(hop)] = nodes;
  }
  return group;
}

inline std::vector<Bytes> sizes() {
  std::vector<Bytes> all = {bytes(1), bytes(7)};
  for (int64_t size = 64; size <= gibibytes(64).count(); size += size / 4) {
    all.push_back(bytes(size));
  }
  return all;
}

}  // namespace herdsim

// Paths between the tops of several network trees, where no switch is above them all.
//
// A row of topologies/ that joins its switches sideways says here how its traffic goes: dimension
// by dimension over a torus, by way of one global cable in a dragonfly, over a shortest path of a
// graph. Paths are fixed for a pair of top and destination, as tables in switches are; where
// several are equally good the destination chooses, which spreads the GPUs of a switch over them.
#pragma once

#include <vector>

#include "sim/base/ids.h"

namespace herdsim {

class MeshRoutes {
 public:
  virtual ~MeshRoutes() = default;
  // Appends the links that join `from` to `to`, in order. Requires: both are tops, and differ.
  virtual void append_path(NodeId from, NodeId to, GpuId destination,
                           std::vector<LinkId>& path) const = 0;
  // Whether two tops are in one group, which latency depends on.
  virtual bool same_group(NodeId a, NodeId b) const = 0;
};

}  // namespace herdsim

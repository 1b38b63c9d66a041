// Textbook graph algorithms on a fabric, to check what its structure promises: is it in one piece,
// what flows between two halves, how far apart are two NICs. They treat the fabric as any graph and
// know nothing of trees, so they are the independent side of the tests of closed forms. For small
// fabrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/fabric/fabric.h"

namespace herdsim {

// Pieces that the network links (without NVLink) connect. NVSwitches alone do not count.
int64_t network_components(const Fabric& fabric);

// The maximum flow from the NICs of one set of GPUs to the NICs of another, over network links at
// line rate. Complexity: push-relabel, O(V^3) at worst; a thousand GPUs take milliseconds.
Bandwidth max_flow_between(const Fabric& fabric, std::span<const GpuId> from,
                           std::span<const GpuId> to);

// The maximum flow through any network of `vertices` vertices, from one to another.
struct FlowEdge {
  size_t from = 0, to = 0;
  Bandwidth capacity;
};
Bandwidth max_flow(size_t vertices, std::span<const FlowEdge> edges, size_t source, size_t sink);

// The most network links on a shortest path between NICs of different hosts; 0 with one host.
// Complexity: one breadth-first search a NIC.
int64_t network_diameter(const Fabric& fabric);

}  // namespace herdsim

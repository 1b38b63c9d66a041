// The network between nodes as sources describe it:
//   "8x100 Gbps NICs per node"            as many ports a node, of so much each
//   "8x ConnectX-7 IB NDR 400Gb/s"        the same
//   "1600 Gbps node-node", "800 Gb/s per node"   of a whole node
//   "InfiniBand 200 Gb/s", "400 Gb/s per GPU"    of one port, of which every GPU has its own
// Bits alone: "NVLink 400 GB/s" is no network between nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace herdsim {

// What one GPU's share of its node's ports carries in one direction, in Gb/s; of the first rate in
// the words. Empty where they state none. Requires: gpus_per_node > 0.
std::optional<double> gigabits_per_gpu(std::string_view words, int64_t gpus_per_node);

}  // namespace herdsim

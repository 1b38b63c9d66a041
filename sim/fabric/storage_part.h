// Where the storage servers are in a fabric, and the way there.
//
// Nodes of storage come after all others, and so do their links: each host's port to the storage
// network (where it has one of its own), frontend switches over so many hosts, what joins those,
// the servers' network ports and their disks:
//
//   kFrontend   host port - frontend switch - frontend core - servers - disks
//   kTraining   GPU - NIC - ToR - pod - core of the GPUs' network       - servers - disks
//
// Vertices may stand for many devices side by side, as elsewhere: all servers are one, and so are
// their disks. Disks serve reads and writes in turn, so both cross the same link, servers to disks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/ids.h"

namespace herdsim {

enum class StoreAccess : uint8_t { kWrite, kRead };

struct StoragePart {
  NodeId first_node;
  bool over_training = false;  // servers hang on the top of the GPUs' network
  size_t gpus_per_port =
      1;  // of a host; its ports are one node, and nodes of ports are the first ones
  NodeId servers, disks;

  // Requires: not over_training.
  NodeId port_of(GpuId gpu) const {
    return NodeId(first_node.index() + gpu.index() / gpus_per_port);
  }
};

}  // namespace herdsim

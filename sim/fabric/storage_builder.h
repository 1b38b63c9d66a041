// Puts storage servers, and hosts' ways to them, into a fabric that is complete without.
#pragma once

#include "sim/fabric/fabric.h"

namespace herdsim {

struct StorageShape {
  bool over_training = false;
  size_t gpus_per_port = 8;     // GPUs of a host
  Bandwidth port;               // of a host, all its frontend ports together
  size_t hosts_per_switch = 1;  // of a frontend switch, the last of which may have fewer
  double oversubscription =
      1;  // the bandwidth of a frontend switch's ports over that of its uplinks
  size_t servers = 1;
  Bandwidth server;  // network port of one
};

// Uplinks of a frontend switch with so many hosts, each of a port's rate: hosts / oversubscription,
// to the nearest whole.
size_t frontend_uplinks(const StorageShape& shape, size_t hosts);

// Requires: over_training only where one network tree reaches every GPU. Existing nodes and links
// keep their ids.
Fabric with_storage(Fabric fabric, const StorageShape& shape);

}  // namespace herdsim

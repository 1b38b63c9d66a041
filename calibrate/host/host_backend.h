// The host as a device: see README.md.
#pragma once

#include <memory>

#include "calibrate/harness/backend.h"
#include "calibrate/peers/peers.h"

namespace herdsim {

// One rank of those of `peers`, which must outlive it.
std::unique_ptr<Backend> make_host_backend(Peers& peers);

}  // namespace herdsim

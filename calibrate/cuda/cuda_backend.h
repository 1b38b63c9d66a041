// NVIDIA GPUs as a device of the harness: see README.md.
#pragma once

#include <memory>

#include "calibrate/harness/backend.h"
#include "calibrate/peers/peers.h"

namespace herdsim {

// One process: all GPUs that it sees, of which the first does what one GPU does and all of them
// collectives. One of several processes, on one node or more: one GPU each. `peers` must outlive
// it. Throws: SpecError in one line where there is no device.
std::unique_ptr<Backend> make_cuda_backend(Peers& peers);

}  // namespace herdsim

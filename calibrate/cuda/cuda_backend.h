// NVIDIA GPUs as a device of the harness: see README.md.
#pragma once

#include <memory>

#include "calibrate/harness/backend.h"
#include "calibrate/peers/peers.h"

namespace herdsim {

// All GPUs of this machine, of which the first does what one GPU does and all of them collectives.
// Throws: SpecError in one line where there is no device.
std::unique_ptr<Backend> make_cuda_backend(Peers& peers);

}  // namespace herdsim

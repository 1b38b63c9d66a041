// The host as a device: see README.md.
#pragma once

#include <memory>

#include "calibrate/harness/backend.h"

namespace herdsim {

// One rank of a job that `mpirun` started, or a job of one. Between construction and destruction
// MPI is up; construct one a process.
std::unique_ptr<Backend> make_host_backend();

}  // namespace herdsim

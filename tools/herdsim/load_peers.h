// The other processes, where mpirun or srun started this program as one of several.
#pragma once

#include <memory>

#include "tools/study/sweep_peers.h"

namespace herdsim {

// Null where this process is alone: then nothing is loaded. Throws: SpecError where it is one of
// several and the program was built without MPI, or MPI does not load here.
std::unique_ptr<SweepPeers> load_peers();

}  // namespace herdsim

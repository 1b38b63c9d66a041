#include "calibrate/peers/peers.h"
#include "sim/base/error.h"

namespace herdsim {

std::unique_ptr<Peers> make_mpi_peers() {
  throw SpecError({{.field = "mpirun",
                    .problem = "started several processes, and this program was built without MPI",
                    .allowed = "one process, or a build where libopenmpi-dev is installed"}});
}

}  // namespace herdsim

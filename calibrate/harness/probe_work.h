// What one run of a probe does: operations, or bytes that move.
#pragma once

#include <cstdint>

#include "calibrate/harness/backend.h"

namespace herdsim {

// Either may be 0: a launch does neither.
struct ProbeWork {
  double flops = 0;
  double bytes = 0;
};

// Of copies between devices the bytes of one way. Of collectives the bytes that pass a rank's link,
// as nccl-tests counts them for the bus bandwidth; of a product beside something else the product
// alone. `ranks`: of the backend.
ProbeWork work_of(const Probe& probe, int64_t ranks);

}  // namespace herdsim

// What a job's own measurement of its network says of its hosts.
#pragma once

#include "sim/models/host_stalls.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// None where the measurement shows no more than the hops of a healthy network. Requires: ranks
// >= 1.
HostStalls stalls_of_measured(const MeasuredNetwork& measured, int64_t ranks,
                              int64_t ranks_per_host);

}  // namespace herdsim

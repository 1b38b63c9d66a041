// What a job's own measurement of its network says of its hosts.
#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/models/host_stalls.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// None where the measurement shows no more than the hops of a healthy network and the time on its
// wires, of which the NICs of a host together carry `host_wires` one way. Requires: ranks >= 1.
HostStalls stalls_of_measured(const MeasuredNetwork& measured, int64_t ranks,
                              int64_t ranks_per_host, Bandwidth host_wires);

}  // namespace herdsim

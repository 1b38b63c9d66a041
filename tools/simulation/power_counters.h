// Clock and power of the GPUs of a trace, as counters.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/time.h"
#include "sim/models/device_profile.h"
#include "sim/observe/span.h"

namespace herdsim {

// What power is averaged over: as fine as a board's own meter, and never more than a few hundred
// samples a step.
Duration power_window(Duration step);

// Adds, of each traced rank, its clock in percent of what the profile was measured at, and its
// power in W: the board's limit while a kernel runs, ClockPowerModel::idle_w otherwise, averaged
// over each window and told where it changes by a watt. Of the cluster, the mean of the traced
// ranks times `gpus`, in MW.
//
// Requires: `clocks` by place in `trace.ranks`, 1 for a GPU as the profile has it.
// Validity: kernels that wait for memory draw less than the limit, and transfers more than idle.
// Complexity: linear in spans and windows.
void add_power(const DeviceProfile& profile, int64_t gpus, const std::vector<double>& clocks,
               StepTrace& trace);

}  // namespace herdsim

// The attention kernels of a profile: fitted where a grid is public, taken from printed figures
// where only those are, borrowed from the H100 where a device has neither.
#pragma once

#include "calibrate/fit/cross_validation.h"
#include "calibrate/fit/recipe.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// Adds the kernels to `profile`, whose data sheet and launch floor are set. `h100` is what other
// devices borrow from, null for the H100 itself. `errors` is null unless cross-validation is asked
// for.
void fit_device_attention(const Recipe& recipe, const PublicTables& tables,
                          const DeviceProfile* h100, DeviceProfile& profile, ErrorTable* errors);

}  // namespace herdsim

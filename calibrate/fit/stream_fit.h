// Fits memory-bound kernels: time = floor + ramp + bytes / rate, one ramp and rate a class, least
// absolute relative error. The ramp is what a kernel takes to fill the memory system and drain it;
// a curve of rates over bytes carries it.
#pragma once

#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "calibrate/profile/measurements.h"
#include "sim/models/device_profile.h"

namespace herdsim {

struct StreamFit {
  double ramp_seconds = 0;  // beyond the launch floor
  double bytes_per_second = 0;

  // Points from the least to the most bytes that were measured, four an octave of ten.
  LogCurve curve(double least_bytes, double most_bytes) const;
};

// Rows of other classes, and of the fold `left_out`, are not looked at. Requires: two sizes at
// least.
StreamFit fit_stream(const std::vector<StreamMeasurement>& rows, StreamClass stream,
                     Duration launch_floor, int left_out = -1);

void cross_validate_stream(const std::vector<StreamMeasurement>& rows, StreamClass stream,
                           const DeviceProfile& device, const std::string& name,
                           ErrorTable& errors);

}  // namespace herdsim

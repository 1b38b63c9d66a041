// Curves of collectives from measured sizes: repetitions become their median, times are made to
// never fall with size, and sizes that their neighbours predict are dropped, so that a curve keeps
// the bends (NCCL changes protocol and algorithm there) and no more. All-gather and reduce-scatter
// run over the same ring with the same tuning: where one of the two lacks a size at which the other
// steps, it is given that step.
#pragma once

#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "calibrate/profile/measurements.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// One curve a (kind, ranks, nodes), in order of first appearance. A point is dropped where the
// straight line of time over size (latency plus size over rate) between the points kept is within
// `tolerance` of it.
std::vector<CollectiveCurve> fit_collectives(const std::vector<CollectiveMeasurement>& rows,
                                             const Provenance& provenance, double tolerance,
                                             int left_out = -1);

void cross_validate_collectives(const std::vector<CollectiveMeasurement>& rows, double tolerance,
                                ErrorTable& errors);

}  // namespace herdsim

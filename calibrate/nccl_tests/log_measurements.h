// The rows of logs as measurements.
#pragma once

#include <string>
#include <vector>

#include "calibrate/nccl_tests/nccl_tests_log.h"
#include "calibrate/profile/measurements.h"

namespace herdsim {

// One test's rows, zero bytes left out. Requires: kind, ranks and nodes are known.
std::vector<CollectiveMeasurement> measurements_of(const NcclTest& test);

// Empty where the test gives a curve, else the reason.
std::string reason_for_no_curve(const NcclTest& test);

}  // namespace herdsim

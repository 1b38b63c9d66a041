// The rows of logs as curves of a profile.
#pragma once

#include <string>
#include <vector>

#include "calibrate/nccl_tests/nccl_tests_log.h"
#include "sim/models/device_profile.h"

namespace herdsim {

struct LogCurves {
  std::vector<CollectiveCurve> curves;  // one a (kind, ranks, nodes); never fall in time
  std::vector<std::string> left_out;    // tests that give none, and why
};

// Rows of zero bytes launch and move nothing, so they are left out. `source` says where the logs
// are from; each curve's provenance is that and its GPU and NCCL version, labelled measured.
LogCurves curves_of_logs(const std::vector<NcclTestsLog>& logs, const std::string& source);

}  // namespace herdsim

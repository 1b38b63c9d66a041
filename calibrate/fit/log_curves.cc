#include "calibrate/fit/log_curves.h"

#include <fmt/format.h>

#include "calibrate/fit/collective_fit.h"
#include "calibrate/nccl_tests/log_measurements.h"

namespace herdsim {
namespace {

// Points that the line between their neighbours predicts this well are dropped.
constexpr double kTolerance = 0.01;

}  // namespace

LogCurves curves_of_logs(const std::vector<NcclTestsLog>& logs, const std::string& source) {
  LogCurves out;
  std::vector<CollectiveMeasurement> rows;
  std::string machines;
  for (const NcclTestsLog& log : logs) {
    for (const NcclTest& test : log.tests) {
      if (std::string reason = reason_for_no_curve(test); !reason.empty()) {
        out.left_out.push_back(
            fmt::format("{}: {}", test.collective.empty() ? "a table" : test.collective, reason));
        continue;
      }
      const std::vector<CollectiveMeasurement> of_test = measurements_of(test);
      rows.insert(rows.end(), of_test.begin(), of_test.end());
      const std::string machine = (test.gpu.empty() ? "GPU not named" : test.gpu) +
                                  (test.nccl.empty() ? "" : ", NCCL " + test.nccl);
      if (machines.find(machine) == std::string::npos) machines += "; " + machine;
    }
  }
  out.curves = fit_collectives(rows, {Evidence::kMeasured, source + machines}, kTolerance);
  return out;
}

}  // namespace herdsim

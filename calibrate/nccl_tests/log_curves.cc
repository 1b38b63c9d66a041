#include "calibrate/nccl_tests/log_curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/fit/collective_fit.h"
#include "calibrate/profile/collective_time.h"

namespace herdsim {
namespace {

// Points that the line between their neighbours predicts this well are dropped.
constexpr double kTolerance = 0.01;

}  // namespace

std::string reason_for_no_curve(const NcclTest& test) {
  if (test.collective.empty()) return "nothing says which collective it is; --set collective=NAME";
  if (std::find(kCollectiveCurveKinds.begin(), kCollectiveCurveKinds.end(), test.collective) ==
      kCollectiveCurveKinds.end()) {
    return fmt::format("profiles hold no curve of {}", test.collective);
  }
  if (test.ranks == 0) return "the ranks are not known; --set ranks=N";
  if (test.ranks < 2) return "one rank exchanges nothing";
  if (test.nodes == 0) return "the nodes are not known; --set nodes=N";
  if (test.nodes > test.ranks) {
    return fmt::format("{} nodes cannot hold {} ranks", test.nodes, test.ranks);
  }
  const bool has_size = std::any_of(test.rows.begin(), test.rows.end(),
                                    [](const NcclTestsRow& row) { return row.size > Bytes(); });
  return has_size ? "" : "all rows are of zero bytes";
}

std::vector<CollectiveMeasurement> measurements_of(const NcclTest& test) {
  std::vector<CollectiveMeasurement> out;
  for (const NcclTestsRow& row : test.rows) {
    if (row.size <= Bytes() || row.seconds() <= 0) continue;
    out.push_back({.kind = test.collective,
                   .ranks = test.ranks,
                   .nodes = test.nodes,
                   .size = row.size,
                   .seconds = row.seconds(),
                   .dtype = row.type});
  }
  return out;
}

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

#include "calibrate/nccl_tests/log_measurements.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/profile/collective_time.h"

namespace herdsim {

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

}  // namespace herdsim

// Weeks of training of two scenarios on the same failures.
//
// Replica i of both draws the same events (sim/job/campaign.h), so the difference of two scenarios
// is taken replica by replica: what luck does to both cancels, and a few replicas tell apart what
// differs by less than a month's luck.
//
// Every instant is in one term of the account, so the terms' differences, each in points of the
// elapsed time, sum to zero; what training loses the others gain. Divided by the tokens that were
// trained instead, they sum to what a token takes longer: a slower step stands in `training` beside
// what failures cost.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics/run_result.h"
#include "tools/study/confidence.h"

namespace herdsim {

struct RunDifference {
  std::string_view term;  // of kRunTermNames, or a figure
  double a = 0, b = 0;    // means
  Interval difference;    // B - A, paired, 95 %
};

struct RunComparison {
  std::vector<RunDifference> figures;  // effective training time, tokens a second, interruptions
  std::vector<RunDifference> terms;    // shares of the elapsed time; the largest difference first
  // Days for 1e12 tokens by the same terms, and their sum last. Empty where a replica trained none.
  std::vector<RunDifference> days_a_trillion;
};

// Requires: as many replicas in both, at least one.
RunComparison compare_runs(const RunResult& a, const RunResult& b);

// A line each, and the differences of each from the first. At most 80 columns.
std::string runs_comparison_table(std::span<const RunResult> runs);
std::string runs_comparison_json(std::span<const RunResult> runs);

}  // namespace herdsim

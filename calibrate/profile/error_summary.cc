#include "calibrate/profile/error_summary.h"

#include <algorithm>
#include <cmath>

namespace herdsim {

double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

void ErrorTable::add(const std::string& group, double predicted, double measured,
                     std::array<double, 2> goal) {
  auto found =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.name == group; });
  if (found == groups_.end()) found = groups_.insert(groups_.end(), {group, goal, {}});
  found->errors.push_back(predicted / measured - 1.0);
}

std::vector<ErrorSummary> ErrorTable::summaries() const {
  std::vector<ErrorSummary> out;
  for (const Group& group : groups_) {
    std::vector<double> errors = group.errors;
    std::sort(errors.begin(), errors.end());
    ErrorSummary summary{
        .group = group.name, .count = errors.size(), .bias = quantile(errors, 0.5)};
    for (double& e : errors) e = std::abs(e);
    std::sort(errors.begin(), errors.end());
    summary.median = quantile(errors, 0.5);
    summary.p90 = quantile(errors, 0.9);
    summary.goal_median = group.goal[0];
    summary.goal_p90 = group.goal[1];
    out.push_back(std::move(summary));
  }
  std::sort(out.begin(), out.end(),
            [](const ErrorSummary& a, const ErrorSummary& b) { return a.group < b.group; });
  return out;
}

}  // namespace herdsim

#include "calibrate/fit/cross_validation.h"

#include <algorithm>
#include <cmath>

#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

int fold(const Fingerprint& hash) { return static_cast<int>(hash.value() % kFolds); }

// The value below which a share of the sorted values lies.
double quantile(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

int fold_of(const GemmMeasurement& row) {
  Fingerprint hash;
  // 1025 rows beside 1024; from 1 to 17 every number is a shape of its own.
  hash.add(row.shape.m > 17 ? row.shape.m / 2 * 2 : row.shape.m);
  hash.add(row.shape.n);
  hash.add(row.shape.k);
  return fold(hash);
}

int fold_of_weight(const GemmMeasurement& row) {
  Fingerprint hash;
  hash.add(row.shape.n);
  hash.add(row.shape.k);
  return fold(hash);
}

int fold_of(const AttentionMeasurement& row) {
  Fingerprint hash;
  hash.add(row.shape.batch);
  hash.add(row.shape.query_tokens);
  hash.add(row.shape.heads);
  hash.add(row.shape.kv_heads);
  hash.add(row.shape.head_dim);
  return fold(hash);
}

int fold_of(const StreamMeasurement& row) {
  Fingerprint hash;
  hash.add(static_cast<int>(row.traffic.stream));
  hash.add(row.traffic.moved);
  return fold(hash);
}

int fold_of(const CollectiveMeasurement& row) {
  Fingerprint hash;
  hash.add(row.kind);
  hash.add(row.ranks);
  hash.add(row.nodes);
  // All-gathers of ten ranks are a few bytes short of the power of two.
  hash.add(static_cast<int>(std::lround(4 * std::log2(static_cast<double>(row.size.count())))));
  return fold(hash);
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

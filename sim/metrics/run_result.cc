#include "sim/metrics/run_result.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

template <class Function>
double mean_over(const std::vector<ReplicaResult>& replicas, Function value) {
  if (replicas.empty()) return 0;
  double sum = 0;
  for (const ReplicaResult& replica : replicas) sum += value(replica);
  return sum / static_cast<double>(replicas.size());
}

double share(Duration part, Duration whole) {
  return whole > Duration::zero() ? part.seconds() / whole.seconds() : 0;
}

Duration term(const ReplicaResult& replica, RunTerm t) {
  return replica.account[static_cast<size_t>(t)];
}

}  // namespace

double ReplicaResult::effective_training_time() const {
  return share(term(*this, RunTerm::kTraining), horizon);
}

double RunResult::mean_horizon_seconds() const {
  return mean_over(replicas, [](const ReplicaResult& r) { return r.horizon.seconds(); });
}

double RunResult::effective_training_time() const {
  return mean_over(replicas, [](const ReplicaResult& r) { return r.effective_training_time(); });
}

double RunResult::effective_training_time_quantile(double probability) const {
  if (replicas.empty()) return 0;
  std::vector<double> sample;
  for (const ReplicaResult& replica : replicas) sample.push_back(replica.effective_training_time());
  return sample_quantile(std::move(sample), probability);
}

double RunResult::kept_step_share() const {
  return mean_over(replicas, [](const ReplicaResult& r) {
    return share(term(r, RunTerm::kTraining) + term(r, RunTerm::kSlowdown), r.horizon);
  });
}

std::array<double, kRunTerms> RunResult::time_account_seconds() const {
  std::array<double, kRunTerms> means{};
  for (size_t i = 0; i < kRunTerms; ++i) {
    means[i] = mean_over(replicas, [i](const ReplicaResult& r) { return r.account[i].seconds(); });
  }
  return means;
}

double RunResult::interruptions(size_t class_index) const {
  return mean_over(replicas, [=](const ReplicaResult& r) {
    return static_cast<double>(r.by_class[class_index]);
  });
}

double RunResult::unexpected() const {
  return mean_over(replicas, [](const ReplicaResult& r) {
    const int64_t all = std::accumulate(r.by_class.begin(), r.by_class.end(), int64_t{0});
    return static_cast<double>(all - r.planned);
  });
}

double RunResult::planned() const {
  return mean_over(replicas, [](const ReplicaResult& r) { return static_cast<double>(r.planned); });
}

double RunResult::undetected_corruptions() const {
  return mean_over(replicas, [](const ReplicaResult& r) {
    return static_cast<double>(r.undetected_corruptions);
  });
}

double RunResult::refailures() const {
  return mean_over(replicas,
                   [](const ReplicaResult& r) { return static_cast<double>(r.refailures); });
}

double RunResult::mean_time_between_interruptions_seconds() const {
  const double count = unexpected() + planned();
  return count > 0 ? mean_horizon_seconds() / count : mean_horizon_seconds();
}

double RunResult::steps() const {
  return mean_over(replicas, [](const ReplicaResult& r) { return static_cast<double>(r.steps); });
}

double RunResult::tokens_per_second() const {
  const double elapsed = mean_horizon_seconds();
  return elapsed > 0 ? tokens() / elapsed : 0;
}

double RunResult::mfu() const {
  const double possible = mean_horizon_seconds() * static_cast<double>(gpus) * peak.per_second();
  return possible > 0 ? steps() * model_flops_per_step.count() / possible : 0;
}

double RunResult::gpu_hours() const {
  return static_cast<double>(gpus) * mean_horizon_seconds() / 3600;
}

double RunResult::gpu_energy_megawatt_hours() const {
  const double busy = mean_over(replicas, [](const ReplicaResult& r) {
    return (term(r, RunTerm::kTraining) + term(r, RunTerm::kSlowdown) + term(r, RunTerm::kLostWork))
        .seconds();
  });
  const double idle = mean_horizon_seconds() - busy;
  return static_cast<double>(gpus) * (busy * busy_watts + idle * idle_watts) / 3600 * 1e-6;
}

double RunResult::days_to_tokens(double target) const {
  const double pace = tokens_per_second();
  return pace > 0 ? target / pace / 86'400 : std::numeric_limits<double>::infinity();
}

double RunResult::days_to_tokens_quantile(double target, double probability) const {
  if (replicas.empty() || tokens_per_step <= 0) return std::numeric_limits<double>::infinity();
  std::vector<double> days;
  for (const ReplicaResult& replica : replicas) {
    const double trained =
        static_cast<double>(replica.steps) * static_cast<double>(tokens_per_step);
    days.push_back(trained > 0 ? target / trained * replica.horizon.seconds() / 86'400
                               : std::numeric_limits<double>::infinity());
  }
  return sample_quantile(std::move(days), probability);
}

double RunResult::days_to_tokens_without_failures(double target) const {
  if (tokens_per_step <= 0) return std::numeric_limits<double>::infinity();
  return target / static_cast<double>(tokens_per_step) * nominal_step.seconds() / 86'400;
}

std::string RunResult::fingerprint() const {
  Fingerprint print;
  print.add(scenario);
  print.add(gpus);
  for (const std::string& name : class_names) print.add(name);
  print.add(nominal_step);
  print.add(tokens_per_step);
  for (const ReplicaResult& replica : replicas) {
    print.add(replica.horizon);
    for (const Duration part : replica.account) print.add(part);
    print.add(replica.steps);
    print.add(replica.planned);
    for (const int64_t count : replica.by_class) print.add(count);
    print.add(replica.undetected_corruptions);
    print.add(replica.restarts_begun);
    print.add(replica.deepest_shortage);
  }
  for (const Contribution& part : contributions) {
    print.add(part.name);
    print.add(part.if_changed);
  }
  if (without_stragglers) print.add(without_stragglers->if_changed);
  return print.text();
}

double sample_quantile(std::vector<double> sample, double probability) {
  std::sort(sample.begin(), sample.end());
  const double position = probability * static_cast<double>(sample.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sample.size() - 1);
  return sample[below] + (position - static_cast<double>(below)) * (sample[above] - sample[below]);
}

}  // namespace herdsim

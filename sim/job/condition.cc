#include "sim/job/condition.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {

Condition PaceOfTheSlowest::canonical(const Condition& condition) const {
  Condition same = condition;
  SlowPart slowest;
  for (const SlowPart& part : condition.slow) {
    slowest.compute_permille = std::min(slowest.compute_permille, part.compute_permille);
    slowest.nic_permille = std::min(slowest.nic_permille, part.nic_permille);
  }
  same.slow.clear();
  if (slowest != SlowPart{}) same.slow.push_back(slowest);
  return same;
}

Duration PaceOfTheSlowest::step_time(const Condition& condition) const {
  double compute = 1000, nic = 1000;
  for (const SlowPart& part : condition.slow) {
    compute = std::min<double>(compute, part.compute_permille);
    nic = std::min<double>(nic, part.nic_permille);
  }
  // A lost NIC leaves its host the others.
  const double rails = static_cast<double>(shape_.gpus_per_host);
  nic = std::max(nic, 1000 * (rails - 1) / rails);
  if (rails < 2) nic = std::max(nic, 1.0);
  const double clock = std::max(1.0, compute * condition.clock_permille / 1000);
  const double away = static_cast<double>(condition.replicas_away);
  const double all = static_cast<double>(shape_.data_parallel);
  const double share = shape_.network_share;
  const double factor = ((1 - share) * 1000 / clock + share * 1000 / nic) *
                        (condition.job_permille / 1000.0) * (all / std::max(1.0, all - away));
  return seconds_rounded_up(shape_.nominal.seconds() * factor);
}

Duration MemoisedStepTime::step_time(const Condition& condition) const {
  const Condition key = model_.canonical(condition);
  std::promise<Duration> promise;
  std::shared_future<Duration> time;
  bool ours = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [place, added] = known_.try_emplace(key);
    if (added) place->second = promise.get_future().share();
    time = place->second;
    ours = added;
  }
  if (!ours) return time.get();
  // The lock is free: other conditions are simulated meanwhile.
  try {
    const Duration simulated = model_.step_time(key);
    HERDSIM_CHECK(simulated > Duration::zero()) << "a step of no time";
    promise.set_value(simulated);
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
  return time.get();
}

size_t MemoisedStepTime::distinct_conditions() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

}  // namespace herdsim

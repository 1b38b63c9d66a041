#include "tools/simulation/composed_step_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace herdsim {
namespace {

// Where intervals of speed begin and end, thousandths.
constexpr std::array kSpeeds = {1000, 800, 500, 200, 10, 1};

double slowdown(int32_t permille) { return 1000.0 / permille - 1; }

int32_t middle(int32_t fast, int32_t slow) {
  const double x = (slowdown(fast) + slowdown(slow)) / 2;
  return static_cast<int32_t>(std::lround(1000 / (1 + x)));
}

// Of a straight line from one speed to another.
double on_line(int32_t fast, double fast_delay, int32_t slow, double slow_delay, int32_t at) {
  const double share = (slowdown(at) - slowdown(fast)) / (slowdown(slow) - slowdown(fast));
  return fast_delay + share * (slow_delay - fast_delay);
}

bool is_slow_gpu(const SlowPart& part) { return part.compute_permille < 1000; }
bool is_slow_nic(const SlowPart& part) { return part.nic_permille < 1000; }

}  // namespace

std::vector<ComposedStepTime::Group> ComposedStepTime::groups_of(const Condition& condition) const {
  constexpr size_t kAddUp = 3;
  std::map<int64_t, Group> by_replica, nics_by_replica;
  for (const SlowPart& part : condition.slow) {
    const int64_t replica = coordinates_of(RankId(static_cast<size_t>(part.gpu)), plan_).dp;
    // The last ones are away.
    if (replica >= plan_.dp - condition.replicas_away) continue;
    (is_slow_gpu(part) ? by_replica : nics_by_replica)[replica].push_back(part);
  }
  std::vector<Group> groups;
  for (auto& [replica, nics] : nics_by_replica) {
    Group& others = by_replica[replica];
    if (nics.size() >= kAddUp) {
      groups.push_back(nics);
    } else {
      others.insert(others.end(), nics.begin(), nics.end());
    }
  }
  std::map<int64_t, Group> by_host;
  for (const auto& [replica, parts] : by_replica) {
    for (const SlowPart& part : parts) by_host[part.gpu / gpus_per_host_].push_back(part);
  }
  for (auto& [host, parts] : by_host) {
    std::sort(parts.begin(), parts.end());
    groups.push_back(parts);
  }
  return groups;
}

double ComposedStepTime::delay_of(const Group& group) const {
  const SlowPart& part = group.front();
  // A lost NIC is another machine, not a slower one; two kinds at once are no line.
  const bool varies =
      group.size() == 1 && is_slow_gpu(part) != is_slow_nic(part) && part.nic_permille > 0;
  if (varies) return interpolated_delay(part);
  return std::max(0.0, simulated({.slow = group}) - simulated({}));
}

double ComposedStepTime::interpolated_delay(const SlowPart& part) const {
  const double undisturbed = simulated({});
  const auto delay_at = [&](int32_t permille) {
    if (permille >= 1000) return 0.0;
    SlowPart at = part;
    (is_slow_gpu(part) ? at.compute_permille : at.nic_permille) = permille;
    return std::max(0.0, simulated({.slow = {at}}) - undisturbed);
  };
  const int32_t wanted = is_slow_gpu(part) ? part.compute_permille : part.nic_permille;
  const auto* end = std::find_if(kSpeeds.begin() + 1, kSpeeds.end() - 1,
                                 [&](int32_t speed) { return speed <= wanted; });
  int32_t fast = *(end - 1), slow = *end;
  while (true) {
    const int32_t half = middle(fast, slow);
    if (half == fast || half == slow)
      return on_line(fast, delay_at(fast), slow, delay_at(slow), wanted);
    const double between = on_line(fast, delay_at(fast), slow, delay_at(slow), half);
    const bool straight = std::abs(delay_at(half) - between) <= kTolerance * undisturbed;
    (wanted >= half ? slow : fast) = half;
    if (straight) return on_line(fast, delay_at(fast), slow, delay_at(slow), wanted);
  }
}

ComposedStepTime::Delays ComposedStepTime::delays_of(const Condition& condition) const {
  Delays longest;
  for (const Group& group : groups_of(condition)) {
    const bool computes = std::any_of(group.begin(), group.end(), is_slow_gpu);
    double& kind = computes ? longest.computation : longest.network;
    kind = std::max(kind, delay_of(group));
  }
  return longest;
}

ComposedStepTime::Delays ComposedStepTime::remembered_delays(const Condition& condition) const {
  Condition key = condition;
  key.clock_permille = key.job_permille = 1000;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  // The lock is free: others look up, or simulate, meanwhile.
  const Delays delays = delays_of(key);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostRemembered) known_.clear();
  known_.emplace(std::move(key), delays);
  return delays;
}

Duration ComposedStepTime::step_time(const Condition& condition) const {
  const bool is_simulated = condition.slow.empty() && condition.job_permille == 1000;
  if (is_simulated || plan_.ranks() <= kSimulatedWhole) return exact_.step_time(condition);
  Condition rest = condition;
  rest.slow.clear();
  rest.job_permille = 1000;
  const double healthy = simulated(rest);
  const double work = condition.replicas_away == 0
                          ? 1
                          : simulated({.replicas_away = condition.replicas_away}) / simulated({});
  const Delays longest = remembered_delays(condition);
  const double delay = longest.computation * 1000 / condition.clock_permille + longest.network;
  return seconds_rounded_up((healthy + delay * work) * condition.job_permille / 1000.0);
}

}  // namespace herdsim

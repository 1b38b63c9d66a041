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

constexpr int64_t kUnknown = -1;

bool is_slow_gpu(const SlowPart& part) { return part.compute_permille < 1000; }
bool is_slow_nic(const SlowPart& part) { return part.nic_permille < 1000; }

}  // namespace

ComposedStepTime::ComposedStepTime(const StepTimeModel& exact, const ParallelPlan& plan,
                                   int64_t gpus_per_host)
    : exact_(exact),
      plan_(plan),
      gpus_per_host_(gpus_per_host),
      places_(static_cast<size_t>(plan.ranks())) {
  for (std::atomic<int64_t>& place : places_) place = kUnknown;
}

int64_t ComposedStepTime::place_of(int64_t gpu) const {
  // Whoever asks first cannot matter: the answer is always the same.
  std::atomic<int64_t>& place = places_[static_cast<size_t>(gpu)];
  const int64_t known = place.load(std::memory_order_relaxed);
  if (known != kUnknown) return known;
  constexpr int32_t kHalfSpeed = 500;
  const Condition alone{.slow = {{.gpu = gpu, .compute_permille = kHalfSpeed}}};
  const int64_t found = exact_.canonical(alone).slow.front().gpu;
  place.store(found, std::memory_order_relaxed);
  return found;
}

std::vector<ComposedStepTime::Group> ComposedStepTime::groups_of(
    const std::vector<SlowPart>& slow) const {
  constexpr size_t kAddUp = 3;
  const auto host_of = [&](const SlowPart& part) { return part.gpu / gpus_per_host_; };
  std::map<int64_t, Group> nics_by_replica, by_host;
  for (const SlowPart& part : slow) {
    if (!is_slow_nic(part) || is_slow_gpu(part)) continue;
    const RankId rank(static_cast<size_t>(part.gpu));
    nics_by_replica[coordinates_of(rank, plan_).dp].push_back(part);
  }
  std::vector<Group> groups;
  for (const auto& [replica, nics] : nics_by_replica) {
    if (nics.size() >= kAddUp) {
      groups.push_back(nics);
    } else {
      for (const SlowPart& part : nics) by_host[host_of(part)].push_back(part);
    }
  }
  for (const SlowPart& part : slow) {
    if (is_slow_gpu(part) && is_slow_nic(part)) by_host[host_of(part)].push_back(part);
  }
  std::map<int64_t, SlowPart> slowest;  // by place
  for (const SlowPart& part : slow) {
    if (!is_slow_gpu(part) || is_slow_nic(part)) continue;
    if (const auto host = by_host.find(host_of(part)); host != by_host.end()) {
      host->second.push_back(part);
      continue;
    }
    const SlowPart there{.gpu = place_of(part.gpu), .compute_permille = part.compute_permille};
    SlowPart& at = slowest.try_emplace(there.gpu, there).first->second;
    at.compute_permille = std::min(at.compute_permille, there.compute_permille);
  }
  for (auto& [host, parts] : by_host) {
    std::sort(parts.begin(), parts.end());
    groups.push_back(parts);
  }
  for (const auto& [place, part] : slowest) groups.push_back({part});
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

double ComposedStepTime::remembered_delay(const Group& group) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(group); known != known_.end()) return known->second;
  }
  // The lock is free: others look up, or simulate, meanwhile.
  const double delay = delay_of(group);
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMostRemembered) known_.clear();
  known_.emplace(group, delay);
  return delay;
}

ComposedStepTime::Delays ComposedStepTime::delays_of(const Condition& condition) const {
  // The last replicas are away.
  const auto is_away = [&](const SlowPart& part) {
    const RankId rank(static_cast<size_t>(part.gpu));
    return coordinates_of(rank, plan_).dp >= plan_.dp - condition.replicas_away;
  };
  std::vector<SlowPart> present = condition.slow;
  if (condition.replicas_away > 0) std::erase_if(present, is_away);
  Delays longest;
  for (const Group& group : groups_of(present)) {
    const bool computes = std::any_of(group.begin(), group.end(), is_slow_gpu);
    // One alone has been given its place's name already.
    const bool is_named = group.size() == 1 && !is_slow_nic(group.front());
    const double delay =
        remembered_delay(is_named ? group : exact_.canonical({.slow = group}).slow);
    double& kind = computes ? longest.computation : longest.network;
    kind = std::max(kind, delay);
  }
  return longest;
}

double ComposedStepTime::delay_of_all(const Condition& condition) const {
  Condition disturbed = condition;
  disturbed.clock_permille = disturbed.job_permille = 1000;
  const Condition rest{.replicas_away = condition.replicas_away};
  const double delay = simulated(disturbed) - simulated(rest);
  const bool computes = std::any_of(condition.slow.begin(), condition.slow.end(), is_slow_gpu);
  return computes ? delay * 1000 / condition.clock_permille : delay;
}

double ComposedStepTime::delay_of_longest(const Condition& condition) const {
  const double work = condition.replicas_away == 0
                          ? 1
                          : simulated({.replicas_away = condition.replicas_away}) / simulated({});
  const Delays longest = delays_of(condition);
  return work * (longest.computation * 1000 / condition.clock_permille + longest.network);
}

Duration ComposedStepTime::step_time(const Condition& condition) const {
  const bool is_small = plan_.ranks() <= kSimulatedWhole;
  const bool is_simulated =
      condition.slow.empty() || (is_small && condition.clock_permille == 1000);
  if (is_simulated && condition.job_permille == 1000) return exact_.step_time(condition);
  Condition rest = condition;
  rest.slow.clear();
  rest.job_permille = 1000;
  const double delay = condition.slow.empty() ? 0
                       : is_small             ? delay_of_all(condition)
                                              : delay_of_longest(condition);
  return seconds_rounded_up((simulated(rest) + delay) * condition.job_permille / 1000.0);
}

}  // namespace herdsim

#include "tools/simulation/machine_memo.h"

#include <algorithm>

namespace herdsim {
namespace {

// Only one placement looks at how many ranks a replica has.
int64_t ranks_per_replica(const Scenario& s) {
  if (s.cluster.placement != PlacementKind::kPackedPods) return 0;
  return s.plan.tp * s.plan.cp * s.plan.pp;
}

bool same(const OtherTraffic& a, const OtherTraffic& b) {
  return a.tor_uplinks == b.tor_uplinks && a.pod_uplinks == b.pod_uplinks;
}

}  // namespace

std::shared_ptr<MachineMemo::Known> MachineMemo::of(const Scenario& scenario) {
  const std::shared_ptr<Entry> entry = entry_of(scenario);
  std::call_once(entry->built, [&] {
    auto known = std::make_shared<Known>();
    known->state = machine_of(scenario);
    entry->machine = std::move(known);
  });
  return entry->machine;
}

std::shared_ptr<MachineMemo::Entry> MachineMemo::entry_of(const Scenario& scenario) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t per_replica = ranks_per_replica(scenario);
  const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->gpus == scenario.gpus && entry->seed == scenario.seed &&
           entry->ranks_per_replica == per_replica && entry->cluster == scenario.cluster &&
           same(entry->other_traffic, scenario.other_traffic);
  });
  if (at != entries_.end()) {
    std::rotate(at, at + 1, entries_.end());
    return entries_.back();
  }
  forget_least_used();
  auto entry = std::make_shared<Entry>();
  entry->cluster = scenario.cluster;
  entry->other_traffic = scenario.other_traffic;
  entry->gpus = scenario.gpus;
  entry->ranks_per_replica = per_replica;
  entry->seed = scenario.seed;
  entries_.push_back(entry);
  return entry;
}

void MachineMemo::forget_least_used() {
  int64_t gpus = 0;
  for (const auto& entry : entries_) gpus += entry->cluster.gpus;
  while (!entries_.empty() && (entries_.size() >= kMostMachines || gpus > kMostGpus)) {
    gpus -= entries_.front()->cluster.gpus;
    entries_.erase(entries_.begin());
  }
}

}  // namespace herdsim

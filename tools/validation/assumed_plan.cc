#include "tools/validation/assumed_plan.h"

#include <algorithm>

namespace herdsim {
namespace {

// Shares of a device's memory: with room to work, and at the least.
constexpr double kRoomToWork = 0.6, kAtTheLeast = 0.8;

// Of `bytes` a parameter on so many GPUs.
bool fits(const Scenario& s, double bytes, int64_t gpus, double share = kRoomToWork) {
  const double memory = share * static_cast<double>(s.profile.hbm.count());
  return bytes * static_cast<double>(s.model.parameters()) <= memory * static_cast<double>(gpus);
}

}  // namespace

ModelRanks assumed_model_ranks(const Scenario& s) {
  constexpr double kBytes = 6;
  if (fits(s, kBytes, 1, kAtTheLeast)) return {};
  int64_t tp = 1;
  while (!fits(s, kBytes, tp) && 2 * tp <= s.cluster.gpus_per_host &&
         s.model.heads % (2 * tp) == 0 && s.gpus % (2 * tp) == 0) {
    tp *= 2;
  }
  for (int64_t pp = 1; pp <= s.model.layers; ++pp) {
    if (s.model.layers % pp != 0 || s.gpus % (tp * pp) != 0) continue;
    if (s.training.global_batch % (s.gpus / (tp * pp)) != 0) continue;
    if (fits(s, kBytes, tp * pp)) return {tp, pp};
  }
  return {};
}

int64_t assumed_shard_ranks(const Scenario& s) {
  constexpr double kBytes = 16;
  const int64_t replica = s.plan.tp * s.plan.pp;
  int64_t ranks = std::min(s.plan.dp, s.cluster.gpus_per_host);
  while (ranks < s.plan.dp && !fits(s, kBytes, replica * ranks)) ranks *= 2;
  return s.plan.dp % ranks == 0 ? ranks : s.plan.dp;
}

}  // namespace herdsim

#include "sim/models/young_daly.h"

#include <algorithm>
#include <cmath>

namespace herdsim {

double young_interval(const CheckpointProblem& p) { return std::sqrt(2 * p.write * p.mtbf); }

double daly_interval(const CheckpointProblem& p) {
  if (p.write >= 2 * p.mtbf) return p.mtbf;
  const double x = p.write / (2 * p.mtbf);
  return young_interval(p) * (1 + std::sqrt(x) / 3 + x / 9) - p.write;
}

double young_interval_with_restart(const CheckpointProblem& p) {
  return std::sqrt(2 * p.write * (p.mtbf + p.restart));
}

double period_including_write(const CheckpointProblem& p) {
  return p.write + std::sqrt(p.write * p.write + 2 * p.write * (p.mtbf + p.restart));
}

double ettr_first_order(const CheckpointProblem& p) {
  const double lost = (p.restart + p.interval / 2 + p.persist) / p.mtbf;
  return std::max(0.0, (1 - lost) / (1 + p.write / p.interval));
}

double ettr_exact(const CheckpointProblem& p) {
  return p.interval / (std::expm1((p.interval + p.write) / p.mtbf) * (p.mtbf + p.restart));
}

double ettr_exact_failing_restarts(const CheckpointProblem& p) {
  return p.interval /
         (p.mtbf * std::exp(p.restart / p.mtbf) * std::expm1((p.interval + p.write) / p.mtbf));
}

double ettr_renewal(const CheckpointProblem& p) { return p.mtbf / (p.mtbf + p.restart); }

double ettr_replica_level(const CheckpointProblem& p, double stall, double replicas) {
  return std::max(0.0, 1 - (stall + p.restart / replicas) / p.mtbf);
}

double tiered_loss(std::span<const CheckpointTierProblem> tiers) {
  double loss = 0;
  for (const CheckpointTierProblem& tier : tiers) {
    const CheckpointProblem& p = tier.problem;
    loss +=
        (tier.detection + p.restart + p.interval / 2 + p.persist) / p.mtbf + p.write / p.interval;
  }
  return loss;
}

double corruption_loss(const CheckpointProblem& p, double latency) {
  return latency + p.restart + p.interval / 2;
}

double attempts_per_recovery(const CheckpointProblem& p) { return std::exp(p.restart / p.mtbf); }

}  // namespace herdsim

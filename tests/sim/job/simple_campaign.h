// A campaign with one failure class, one restart time and one checkpoint cost: what the closed
// forms describe.
#pragma once

#include <cmath>

#include "sim/job/campaign.h"
#include "sim/models/young_daly.h"

namespace herdsim {

struct SimpleCampaign {
  CheckpointProblem problem;
  bool restarts_can_fail = false;
  ArrivalShape law = ArrivalShape::kExponential;
  double weibull_k = 0.75;
  double failures = 20'000;  // to expect over all replicas
  int64_t replicas = 20;
  uint64_t seed = 1;
};

// Steps of a tenth of a second, so that whole steps cost nothing worth counting.
inline constexpr Duration kShortStep = milliseconds(100);

inline CampaignSpec campaign_of(const SimpleCampaign& simple) {
  const CheckpointProblem& p = simple.problem;
  CampaignRequest request{.scenario = "simple", .machine = {.gpus = 8}};
  request.reliability.base = "none";
  request.reliability.classes = {
      {.name = "nccl_watchdog_timeout", .rate_per_hour = 3600 / p.mtbf / 8}};
  request.reliability.corruption_detectors = {};
  request.reliability.restarts_can_fail = simple.restarts_can_fail;
  request.reliability.weibull_k = simple.weibull_k;
  request.checkpoint.interval_s = p.interval;
  request.checkpoint.bytes = gigabytes(8);
  request.checkpoint.storage = {.write_gb_per_s = p.persist > 0 ? 8 / p.persist : 1e9,
                                .read_gb_per_s = 1e9,
                                .shared_cap_gb_per_s = 1e12,
                                .copy_out_gb_per_s_per_gpu = p.write > 0 ? 1 / p.write : 1e9,
                                .client_gb_per_s = 1e9,
                                .frontend_gbit_per_s = 1e9,
                                .files_per_gpu = 0};
  request.recovery.spares = 0;
  request.recovery.phases = {
      .diagnosis_s = p.restart, .reschedule_s = 0, .start_s = 0, .init_s = 0, .warmup_s = 0};
  request.nominal_step = kShortStep;
  request.run.days =
      simple.failures * (p.mtbf + p.restart) / static_cast<double>(simple.replicas) / 86'400;
  request.run.replicas = simple.replicas;
  request.seed = simple.seed;
  CampaignSpec spec = resolve(request);
  spec.classes[0].row.detection = {};
  spec.classes[0].row.law.shape = simple.law;
  return spec;
}

struct Estimate {
  double mean = 0, standard_error = 0;
};

inline Estimate effective_training_time_of(const RunResult& result) {
  const auto n = static_cast<double>(result.replicas.size());
  double square = 0;
  const double mean = result.effective_training_time();
  for (const ReplicaResult& replica : result.replicas) {
    const double difference = replica.effective_training_time() - mean;
    square += difference * difference;
  }
  return {.mean = mean, .standard_error = std::sqrt(square / (n - 1) / n)};
}

inline RunResult run_simple(const SimpleCampaign& simple) {
  return run_campaign(campaign_of(simple), PaceOfTheSlowest({.nominal = kShortStep}),
                      {.threads = 2});
}

}  // namespace herdsim

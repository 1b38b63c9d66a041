#include "sim/job/renewal_campaign.h"

#include <algorithm>
#include <cmath>

#include "sim/job/campaign.h"

namespace herdsim {

CampaignSpec spec_of(const RenewalCampaign& campaign) {
  const CheckpointProblem& p = campaign.problem;
  CampaignRequest request{.scenario = "renewal", .machine = {.gpus = 8}};
  request.reliability.base = "none";
  request.reliability.classes = {
      {.name = "nccl_watchdog_timeout", .rate_per_hour = 3600 / p.mtbf / 8}};
  request.reliability.corruption_detectors = {};
  request.reliability.restarts_can_fail = campaign.restarts_can_fail;
  request.reliability.weibull_k = campaign.weibull_k;
  request.checkpoint.interval_s = p.interval;
  request.checkpoint.bytes = gigabytes(8);
  // Costs are given, whatever the store; 0 would ask the store.
  request.checkpoint.storage = {.measured_block_s = std::max(p.write, 1e-9),
                                .measured_save_s = std::max(p.persist, 1e-9),
                                .measured_load_s = 1e-9};
  request.recovery.spares = 0;
  request.recovery.phases = {
      .diagnosis_s = p.restart, .reschedule_s = 0, .start_s = 0, .init_s = 0, .warmup_s = 0};
  request.nominal_step = kRenewalStep;
  request.run.days =
      campaign.failures * (p.mtbf + p.restart) / static_cast<double>(campaign.replicas) / 86'400;
  request.run.replicas = campaign.replicas;
  request.seed = campaign.seed;
  CampaignSpec spec = resolve(request);
  spec.classes[0].row.detection = {};
  spec.classes[0].row.law.shape = campaign.law;
  return spec;
}

RunResult run_renewal_campaign(const RenewalCampaign& campaign, int threads) {
  return run_campaign(spec_of(campaign), PaceOfTheSlowest({.nominal = kRenewalStep}),
                      {.threads = threads});
}

Estimate effective_training_time_of(const RunResult& result) {
  const auto n = static_cast<double>(result.replicas.size());
  double square = 0;
  const double mean = result.effective_training_time();
  for (const ReplicaResult& replica : result.replicas) {
    const double difference = replica.effective_training_time() - mean;
    square += difference * difference;
  }
  return {.mean = mean, .standard_error = std::sqrt(square / (n - 1) / n)};
}

const std::vector<ReferencePoint>& reference_points() {
  static const std::vector<ReferencePoint> points = {
      {{.mtbf = 11135.1, .restart = 120, .interval = 120, .write = 0.6}, 0.9790, 0.0001},
      {{.mtbf = 11135.1, .restart = 120, .interval = 300, .write = 0.6}, 0.9740, 0.0002},
      {{.mtbf = 11135.1, .restart = 120, .interval = 600, .write = 0.6}, 0.9619, 0.0003},
      {{.mtbf = 11135.1, .restart = 120, .interval = 1800, .write = 0.6}, 0.9106, 0.0008},
      {{.mtbf = 11135.1, .restart = 120, .interval = 3600, .write = 0.6}, 0.8397, 0.0014},
      {{.mtbf = 11135.1, .restart = 300, .interval = 120, .write = 0.6}, 0.9635, 0.0002},
      {{.mtbf = 11135.1, .restart = 300, .interval = 300, .write = 0.6}, 0.9586, 0.0003},
      {{.mtbf = 11135.1, .restart = 300, .interval = 600, .write = 0.6}, 0.9466, 0.0003},
      {{.mtbf = 11135.1, .restart = 300, .interval = 1800, .write = 0.6}, 0.8969, 0.0006},
      {{.mtbf = 11135.1, .restart = 300, .interval = 3600, .write = 0.6}, 0.8257, 0.0016},
      {{.mtbf = 11135.1, .restart = 600, .interval = 120, .write = 0.6}, 0.9392, 0.0005},
      {{.mtbf = 11135.1, .restart = 600, .interval = 300, .write = 0.6}, 0.9349, 0.0004},
      {{.mtbf = 11135.1, .restart = 600, .interval = 600, .write = 0.6}, 0.9224, 0.0005},
      {{.mtbf = 11135.1, .restart = 600, .interval = 1800, .write = 0.6}, 0.8736, 0.0008},
      {{.mtbf = 11135.1, .restart = 600, .interval = 3600, .write = 0.6}, 0.8000, 0.0014},
      {{.mtbf = 11135.1, .restart = 1000, .interval = 120, .write = 0.6}, 0.9079, 0.0006},
      {{.mtbf = 11135.1, .restart = 1000, .interval = 300, .write = 0.6}, 0.9030, 0.0008},
      {{.mtbf = 11135.1, .restart = 1000, .interval = 600, .write = 0.6}, 0.8920, 0.0006},
      {{.mtbf = 11135.1, .restart = 1000, .interval = 1800, .write = 0.6}, 0.8441, 0.0014},
      {{.mtbf = 11135.1, .restart = 1000, .interval = 3600, .write = 0.6}, 0.7781, 0.0016},
      {{.mtbf = 6646.2, .restart = 300, .interval = 300, .write = 1e-4}, 0.9356, 0.0003},
      {{.mtbf = 6646.2, .restart = 300, .interval = 3600, .write = 1e-4}, 0.7213, 0.0015},
      {{.mtbf = 8861.5, .restart = 300, .interval = 2305.8, .write = 300}, 0.7366, 0.0012},
      {{.mtbf = 8861.5, .restart = 300, .interval = 421, .write = 10}, 0.9219, 0.0003},
      {{.mtbf = 57600, .restart = 300, .interval = 5878.8, .write = 300}, 0.8965, 0.0010},
      {{.mtbf = 2953.8, .restart = 120, .interval = 120, .write = 1e-4}, 0.9419, 0.0002},
      {{.mtbf = 1080, .restart = 600, .interval = 60, .write = 1e-4}, 0.6252, 0.0007},
      {{.mtbf = 1080, .restart = 180, .interval = 60, .write = 1e-4}, 0.8337, 0.0003},
  };
  return points;
}

}  // namespace herdsim

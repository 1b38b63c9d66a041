// The published 54 days: Llama 3 405B on 16,384 GPUs, all defaults.
#pragma once

#include <string_view>

#include "sim/job/campaign.h"

namespace herdsim {

inline CampaignRequest llama3_request(int64_t replicas) {
  return {.scenario = "llama3-405b-16384",
          .machine = {.gpus = 16'384},
          .run = {.days = 54, .replicas = replicas},
          .nominal_step = milliseconds(6'200),
          .data_parallel = 128,
          .tokens_per_step = 2048 * 8192};
}

inline RunResult run(const CampaignRequest& request, int threads = 2) {
  const PaceOfTheSlowest model(
      {.nominal = request.nominal_step, .data_parallel = request.data_parallel});
  return run_campaign(resolve(request), model, {.threads = threads});
}

inline CampaignRequest small_request() {
  CampaignRequest request = llama3_request(3);
  request.run.days = 20;
  request.reliability.slow = {{.name = "fail_slow_network"}, {.name = "slow_hosts"}};
  request.reliability.rate_scale = 3;
  return request;
}

inline CampaignRequest tiered_request(std::string_view recovery) {
  CampaignRequest request = llama3_request(6);
  request.checkpoint.policy = "tiered";
  request.recovery.policy = recovery;
  return request;
}

}  // namespace herdsim

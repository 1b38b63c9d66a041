// Links and switches that fail: what survives them, and what they slow down.
#include "sim/job/campaign.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

// Links and ToRs alone, a hundred times as often as published.
CampaignRequest network_request(int64_t rails, int64_t planes, std::string_view policy) {
  CampaignRequest request = llama3_request(4);
  request.reliability.base = "hpn-links";
  request.reliability.rate_scale = 100;
  request.recovery.spares = 2048;
  request.recovery.policy = policy;
  request.machine.rails = rails;
  request.machine.planes = planes;
  return request;
}

TEST(Campaign, traffic_moves_to_other_ports_and_rails_where_the_fabric_has_them) {
  const auto stops = [](int64_t rails, int64_t planes, std::string_view policy) {
    const RunResult result = run(network_request(rails, planes, policy));
    return std::pair(result.interruptions(0), result.interruptions(1));
  };
  const auto racks = stops(1, 1, "restart-with-spares");
  EXPECT_GT(racks.first, 1000);
  EXPECT_GT(racks.second, 50);
  // A rack's ToR cuts its hosts off whatever the policy; one of a rail leaves them the other rails.
  EXPECT_EQ(stops(1, 1, "rail-failover"), std::pair(0.0, racks.second));
  EXPECT_EQ(stops(8, 1, "rail-failover"), std::pair(0.0, 0.0));
  EXPECT_EQ(stops(8, 1, "restart-with-spares"), racks);
  EXPECT_EQ(stops(8, 2, "restart-with-spares"), std::pair(0.0, 0.0));
  // What does not stop the job slows it down, and is no failure of the forecast either.
  const RunResult ports = run(network_request(8, 2, "restart-with-spares"));
  EXPECT_GT(ports.time_account_seconds()[static_cast<size_t>(RunTerm::kSlowdown)], 0);
  EXPECT_EQ(ports.expected_rate_per_hour, 0);
  const RunResult rail = run(network_request(1, 1, "rail-failover"));
  EXPECT_NEAR(rail.expected_rate_per_hour * 54 * 24 / racks.second, 1, 0.3);
}

TEST(Campaign, a_dead_tor_slows_every_nic_under_it) {
  CampaignRequest request = network_request(8, 2, "restart-with-spares");
  request.reliability.classes = {{.name = "nic_tor_link", .scale = 0}};
  class Widest final : public StepTimeModel {
   public:
    Duration step_time(const Condition& condition) const override {
      for (const SlowPart& part : condition.slow) EXPECT_EQ(part.nic_permille, 500);
      if (condition.slow.size() > most) most = condition.slow.size();
      return seconds(6);
    }
    mutable size_t most = 0;
  };
  const Widest model;
  request.run.replicas = 1;
  run_campaign(resolve(request), model, {});
  EXPECT_GE(model.most, 16U);
  EXPECT_EQ(model.most % 16, 0U);
}

}  // namespace
}  // namespace herdsim

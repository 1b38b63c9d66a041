// What a request has to be, and what follows from it.
#include "sim/job/campaign_spec.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sim/base/error.h"
#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

TEST(CampaignSpec, every_fault_of_a_request_is_named_at_once) {
  CampaignRequest request = llama3_request(1);
  request.reliability.rate_scale = -1;
  request.run.days = 0;
  request.recovery.spares = -1;
  request.checkpoint.policy = "asinc";
  request.recovery.policy = "restart-with-spare";
  request.reliability.classes = {{.name = "faulty_gpo", .rate_per_hour = 1},
                                 {.name = "nic", .rate_per_hour = -2}};
  try {
    resolve(request);
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    std::set<std::string> fields;
    for (const Fault& fault : error.faults()) fields.insert(fault.field);
    EXPECT_EQ(fields, (std::set<std::string>{"reliability.rate_scale", "run.days",
                                             "recovery.spares", "checkpoint.policy",
                                             "recovery.policy", "reliability.classes[0].name",
                                             "reliability.classes[1].rate_per_hour"}));
    const std::string text = error.what();
    EXPECT_NE(text.find("did you mean \"async\""), std::string::npos) << text;
    EXPECT_NE(text.find("did you mean \"faulty_gpu\""), std::string::npos) << text;
  }
}

TEST(CampaignSpec, moves_and_events_beyond_what_can_be_simulated_are_refused) {
  const auto message_of = [](const CampaignRequest& request) -> std::string {
    try {
      run(request);
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  CampaignRequest request = llama3_request(1);
  request.checkpoint.storage.copy_out_gb_per_s_per_gpu = 1e-300;
  EXPECT_NE(message_of(request).find("checkpoint.storage: a save to the"), std::string::npos);
  request = llama3_request(1);
  request.checkpoint.storage.measured_load_s = 1e10;
  EXPECT_NE(message_of(request).find("checkpoint.storage: a load from the"), std::string::npos);
  request = llama3_request(1);
  request.reliability.slow = {{.name = "fail_slow_network", .rate_per_hour = 1000}};
  EXPECT_NE(message_of(request).find("reliability.slow.fail_slow_network.rate_per_hour"),
            std::string::npos);
}

TEST(CampaignSpec, a_save_longer_than_its_interval_warns) {
  CampaignRequest request = llama3_request(1);
  request.checkpoint.interval_s = 20;
  const CampaignSpec spec = resolve(request);
  ASSERT_EQ(spec.warnings.size(), 2u);
  EXPECT_NE(spec.warnings[0].find("saves queue"), std::string::npos);
  EXPECT_NE(spec.warnings[1].find("the store of 240 PB holds"), std::string::npos);
}

TEST(CampaignSpec, interval_rules_follow_their_forms) {
  CampaignRequest request = llama3_request(30);
  request.checkpoint.storage.copy_out_gb_per_s_per_gpu = 0.0323;  // 10 s blocked
  request.checkpoint.rule = "young";
  const CampaignSpec young = resolve(request);
  EXPECT_NEAR(static_cast<double>(young.checkpoints.tiers[0].period_steps) * 6.2, 472, 6.2);
  const double at_young = run(request).effective_training_time();
  request.checkpoint.rule = "adaptive";
  EXPECT_NEAR(run(request).effective_training_time(), at_young, 0.003);
  request.checkpoint.rule = "fixed";
  for (const double interval : {100.0, 2500.0}) {
    request.checkpoint.interval_s = interval;
    EXPECT_LT(run(request).effective_training_time(), at_young) << interval;
  }
}

TEST(CampaignSpec, a_copy_in_hbm_needs_room_and_processes_that_live_on) {
  CampaignRequest request = tiered_request("local-rollback");
  const Bytes needed = resolve(request).checkpoints.hbm_a_gpu;
  const int64_t shard = request.checkpoint.bytes.count() / request.machine.gpus;
  EXPECT_NEAR(static_cast<double>(needed.count()), 2.0 * static_cast<double>(shard), 2);
  request.hbm_free = needed;
  EXPECT_NO_THROW(resolve(request));
  request.hbm_free = needed - Bytes(1);
  EXPECT_THROW(resolve(request), SpecError);
  request.recovery.policy = "restart-with-spares";
  const CampaignSpec spec = resolve(request);
  EXPECT_EQ(spec.checkpoints.tiers.front().medium, Medium::kHostMemory);
  ASSERT_FALSE(spec.warnings.empty());
  EXPECT_NE(spec.warnings.front().find("keeps nothing in HBM"), std::string::npos);
}

}  // namespace
}  // namespace herdsim

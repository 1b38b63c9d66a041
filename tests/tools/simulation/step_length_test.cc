// Steps that the clock or the patience of a user could not hold are refused, and say why.
#include "tools/simulation/step_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

std::string fault_of(const std::vector<std::string>& sets) {
  std::vector<std::string> all = {"gpus=64", "parallel.dp=64", "training.global_batch=64",
                                  "model.layers=4", "recovery.spares=0"};
  all.insert(all.end(), sets.begin(), sets.end());
  try {
    const StepResult result = simulate_step(load_scenario("llama3-8b-1024", all), {}).result;
    int64_t sum = 0;
    for (const int64_t term : result.account_rank_nanoseconds) sum += term;
    EXPECT_EQ(sum, result.gpus * result.step_time.nanoseconds());
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST(StepLength, what_64_bits_of_nanoseconds_do_not_hold_is_refused) {
  EXPECT_EQ(fault_of({}), "");
  EXPECT_EQ(fault_of({"software.host_milliseconds_per_step=1e7"}), "");
  for (const std::string set : {"software.clock_factor=1e-300", "software.clock_factor=1e-9",
                                "profile.launch.floor_microseconds=1e18",
                                "cluster.degraded={gpu: 1 compute_factor: 1e-12}"}) {
    EXPECT_THAT(fault_of({set}), HasSubstr("llama3-8b-1024: step: takes ")) << set;
    EXPECT_THAT(fault_of({set}), HasSubstr("s or longer, \"")) << set;
  }
  EXPECT_THAT(fault_of({"training.loader.tokens_per_second=1e-6"}), HasSubstr("step: takes "));
  EXPECT_THAT(fault_of({"cluster.nic_efficiency=1e-10"}),
              HasSubstr("with 64 GPUs: less work a step, or faster GPUs and links"));
}

TEST(StepLength, a_job_that_would_repeat_its_step_too_often_is_refused) {
  const std::string other =
      "other_jobs={scenario: \"llama3-8b-1024\" set: \"gpus=64\" set: \"parallel.dp=64\" "
      "begins_s: ";
  EXPECT_EQ(fault_of({other + "1 }"}), "");
  EXPECT_THAT(fault_of({other + "500000 }"}), HasSubstr("other_jobs.0.begins_s: "));
}

}  // namespace
}  // namespace herdsim

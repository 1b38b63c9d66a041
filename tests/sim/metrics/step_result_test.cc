#include "sim/metrics/step_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace herdsim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 3 GPUs, so that no term divides evenly.
StepResult small_step() {
  StepResult r;
  r.scenario = "small";
  r.gpus = 3;
  r.step_time = nanoseconds(1'000'000'007);
  r.tokens_per_step = 6'000;
  r.model_flops_causal = Flops(1.2e15);
  r.model_flops_full = Flops(1.5e15);
  r.peak = teraflops(1000);
  r.dtype = "bf16";
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kCompute)] = 2'000'000'003;
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kBubble)] = 700'000'001;
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kOther)] = 300'000'017;
  r.stage_account = {TimeAccount{}};
  r.memory = {{.stage = 0, .peak = gigabytes(30), .moment = "forward of micro-batch 0"},
              {.stage = 1, .peak = gigabytes(40), .moment = "optimizer"},
              {.stage = 2, .peak = gigabytes(40), .moment = "optimizer"}};
  r.memory_capacity = gigabytes(80);
  return r;
}

TEST(StepResult, rates_are_work_over_gpu_seconds) {
  const StepResult r = small_step();
  EXPECT_DOUBLE_EQ(r.tokens_per_second_per_gpu(), 2000 / 1.000000007);
  EXPECT_DOUBLE_EQ(r.flops_per_gpu_causal().teraflops(), 400 / 1.000000007);
  EXPECT_DOUBLE_EQ(r.mfu_causal(), 0.4 / 1.000000007);
  EXPECT_DOUBLE_EQ(r.mfu_full(), 0.5 / 1.000000007);
  EXPECT_DOUBLE_EQ(r.bubble_fraction(), 0.700000001 / 3.000000021);
}

TEST(StepResult, the_mean_account_sums_to_the_step_to_the_tick) {
  StepResult r = small_step();
  for (const int64_t gpus : {1, 3, 7, 16'384, 1'000'003}) {
    r.gpus = gpus;
    r.step_time = nanoseconds(5'432'198'765);
    // Spread the whole unevenly over all terms; the last takes what is left.
    int64_t left = gpus * r.step_time.nanoseconds();
    for (size_t i = 0; i + 1 < kTimeTerms; ++i) {
      r.account_rank_nanoseconds[i] = left / 3 - static_cast<int64_t>(i);
      left -= r.account_rank_nanoseconds[i];
    }
    r.account_rank_nanoseconds[kTimeTerms - 1] = left;
    const auto seconds = r.time_account_seconds();
    const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
    EXPECT_LT(std::abs(sum - r.step_time.seconds()), 0.5e-9) << gpus;
  }
}

TEST(StepResult, the_peak_stage_is_the_first_of_the_highest) {
  EXPECT_EQ(small_step().peak_stage()->stage, 1);
  EXPECT_EQ(StepResult{}.peak_stage(), nullptr);
}

TEST(StepResult, a_plausible_result_has_no_warning_of_its_own) {
  EXPECT_THAT(small_step().all_warnings(), IsEmpty());
}

TEST(StepResult, own_warnings_come_first) {
  StepResult r = small_step();
  r.warnings = {"extrapolated"};
  EXPECT_THAT(r.all_warnings(), ::testing::ElementsAre("extrapolated"));
}

TEST(StepResult, utilisation_above_one_is_warned_of_with_a_hint) {
  StepResult r = small_step();
  r.peak = teraflops(300);
  ASSERT_EQ(r.all_warnings().size(), 1u);
  EXPECT_THAT(r.all_warnings()[0], HasSubstr("MFU is 133.3 %"));
  EXPECT_THAT(r.all_warnings()[0], HasSubstr("look for"));
}

TEST(StepResult, an_account_off_by_one_tick_is_warned_of) {
  StepResult r = small_step();
  r.account_rank_nanoseconds[0] += 1;
  ASSERT_EQ(r.all_warnings().size(), 1u);
  EXPECT_THAT(r.all_warnings()[0], HasSubstr("time account"));
}

TEST(StepResult, memory_beyond_the_device_is_warned_of_and_equal_memory_fits) {
  StepResult r = small_step();
  r.memory_capacity = gigabytes(40);
  EXPECT_TRUE(r.fits());
  r.memory_capacity = gigabytes(40) - bytes(1);
  EXPECT_FALSE(r.fits());
  ASSERT_EQ(r.all_warnings().size(), 1u);
  EXPECT_THAT(r.all_warnings()[0], HasSubstr("stage 1"));
}

TEST(StepResult, a_step_without_time_is_a_warning_not_a_number) {
  StepResult r = small_step();
  r.step_time = Duration::zero();
  EXPECT_THAT(r.all_warnings(), ::testing::ElementsAre(HasSubstr("nothing was simulated")));
}

TEST(StepResult, the_fingerprint_sees_every_field_but_how_it_was_simulated) {
  const std::string before = small_step().fingerprint();
  const std::vector<std::function<void(StepResult&)>> physical = {
      [](StepResult& r) { r.scenario += "x"; },
      [](StepResult& r) { r.gpus += 1; },
      [](StepResult& r) { r.step_time += nanoseconds(1); },
      [](StepResult& r) { r.tokens_per_step += 1; },
      [](StepResult& r) { r.model_flops_causal += Flops(1); },
      [](StepResult& r) { r.model_flops_full += Flops(1); },
      [](StepResult& r) { r.peak = r.peak * 1.5; },
      [](StepResult& r) { r.dtype = "fp8"; },
      [](StepResult& r) { r.account_rank_nanoseconds[4] += 1; },
      [](StepResult& r) { r.stage_account[0][2] += nanoseconds(1); },
      [](StepResult& r) { r.stage_account.emplace_back(); },
      [](StepResult& r) { r.memory[1].stage += 7; },
      [](StepResult& r) { r.memory[1].peak += bytes(1); },
      [](StepResult& r) { r.memory[1].moment += "x"; },
      [](StepResult& r) { r.memory[1].weights += bytes(1); },
      [](StepResult& r) { r.memory[1].gradients += bytes(1); },
      [](StepResult& r) { r.memory[1].optimizer += bytes(1); },
      [](StepResult& r) { r.memory[1].activations += bytes(1); },
      [](StepResult& r) { r.memory[1].logits += bytes(1); },
      [](StepResult& r) { r.memory[1].communication += bytes(1); },
      [](StepResult& r) { r.memory[1].overhead += bytes(1); },
      [](StepResult& r) { r.memory_capacity += bytes(1); }};
  for (size_t i = 0; i < physical.size(); ++i) {
    StepResult r = small_step();
    physical[i](r);
    EXPECT_NE(r.fingerprint(), before) << "change " << i;
  }
  StepResult r = small_step();
  r.simulated_ranks = 9;
  r.events = 9;
  r.wall_seconds = 9;
  r.warnings = {"folding is off"};
  EXPECT_EQ(r.fingerprint(), before);
}

TEST(StepResult, parts_of_equal_sum_do_not_collide) {
  StepResult a = small_step(), b = small_step();
  a.memory[0].weights = bytes(1);
  b.memory[0].gradients = bytes(1);
  EXPECT_NE(a.fingerprint(), b.fingerprint());
}

TEST(StepResultDeathTest, rates_of_no_time_are_a_program_error) {
  StepResult r = small_step();
  r.step_time = Duration::zero();
  EXPECT_DEATH(r.mfu_causal(), "scenario small");
}

}  // namespace
}  // namespace herdsim

// Failure processes: superposition, over-dispersion, and which fabric fails how often.
#include "sim/job/failure_source.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

CampaignSpec one_class(std::string name, double rate_per_gpu_hour, std::string law) {
  CampaignRequest request = llama3_request(1);
  request.reliability.base = "none";
  request.reliability.classes = {
      {.name = std::move(name), .rate_per_hour = rate_per_gpu_hour, .law = std::move(law)}};
  return resolve(request);
}

std::vector<double> failure_times(const CampaignSpec& spec, uint64_t replica,
                                  double horizon_seconds) {
  Engine engine;
  std::vector<double> times;
  FailureSource source(engine, spec, replica,
                       [&](const FailureEvent&) { times.push_back(engine.now().seconds()); });
  source.start();
  engine.run_until(Instant::start() + seconds_rounded_up(horizon_seconds));
  return times;
}

GapShape shape_of(const std::vector<double>& times) {
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  return shape_of_gaps(gaps);
}

TEST(FailureSource, superposed_components_fail_as_separate_ones_do) {
  // 2,048 components, a year: 4,100 failures either way. The counts agree within 5 sigma, and gaps
  // are exponential in both.
  const double rate = 2.0 / 8766, horizon = 8766 * 3600;
  const auto separate = failures_component_by_component(5, 2048, rate, horizon);
  const auto together =
      failure_times(one_class("nccl_watchdog_timeout", rate * 2048 / 16'384, ""), 0, horizon);
  const double expected = 2 * 2048;
  EXPECT_NEAR(static_cast<double>(separate.size()), expected, 5 * std::sqrt(expected));
  EXPECT_NEAR(static_cast<double>(together.size()), expected, 5 * std::sqrt(expected));
  for (const auto& times : {separate, together}) {
    const GapShape shape = shape_of(times);
    // The estimate of k has a spread of 0.78 / sqrt(n) = 0.012.
    EXPECT_NEAR(shape.weibull_k, 1, 0.06);
    EXPECT_NEAR(shape.variation, 1, 0.08);
  }
}

TEST(FailureSource, repeated_failures_of_unmended_parts_look_like_published_logs) {
  // At 3.09 h between failures: Weibull shape 0.72 to 0.78 and variation 1.1 to 1.3, each within
  // 0.05.
  const CampaignSpec spec = one_class("nccl_watchdog_timeout", 419 / kLlama3GpuHours, "clustered");
  const auto times = failure_times(spec, 0, 54 * 86'400.0 * 60);
  const GapShape shape = shape_of(times);
  EXPECT_GT(shape.weibull_k, 0.67);
  EXPECT_LT(shape.weibull_k, 0.83);
  EXPECT_GT(shape.variation, 1.05);
  EXPECT_LT(shape.variation, 1.35);
  // The rate stays: clusters of mean 4/3 have a variance of count over mean of 1/(1 - 0.25)^2; 5
  // sigma.
  EXPECT_NEAR(static_cast<double>(times.size()) / 60, 419, 5 * std::sqrt(419 * 1.78 / 60));
}

TEST(FailureSource, a_weibull_class_has_its_shape_and_rate) {
  const auto times = failure_times(
      one_class("nccl_watchdog_timeout", 419 / kLlama3GpuHours, "weibull"), 0, 54 * 86'400.0 * 60);
  const GapShape shape = shape_of(times);
  EXPECT_NEAR(shape.weibull_k, 0.75, 0.03);
  EXPECT_NEAR(shape.mean_seconds, 11'135, 400);
}

TEST(FailureSource, an_empirical_law_draws_from_the_log) {
  CampaignRequest request = llama3_request(1);
  request.reliability.base = "none";
  request.reliability.log = {
      {.name = "nic", .gaps_seconds = {500, 100, 300}, .rate_per_hour = 3600 / 300.0 / 16'384}};
  const auto times = failure_times(resolve(request), 0, 3e6);
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], 99.9);
    EXPECT_LE(times[i] - times[i - 1], 500.1);
  }
  EXPECT_NEAR(shape_of(times).mean_seconds, 300, 10);
}

TEST(FailureSource, links_and_tors_fail_at_their_published_rates) {
  // HPN: 16.6 NIC-ToR links and 0.9 ToRs in 54 days at 16,384; 200 replicas, 5 sigma.
  CampaignRequest request = llama3_request(200);
  request.reliability.base = "hpn-links";
  const RunResult result = run(request);
  EXPECT_NEAR(result.interruptions(0), 16.6, 5 * std::sqrt(16.6 / 200) + 0.05);
  EXPECT_NEAR(result.interruptions(1), 0.93, 5 * std::sqrt(0.93 / 200) + 0.05);
}

TEST(FailureSource, lemons_fail_more_until_they_are_removed) {
  // 1 % of the hosts fail 41 times as often: 40 % more failures of hosts. Three strikes end most of
  // that.
  CampaignRequest request = llama3_request(60);
  request.reliability.base = "rsc-2";
  const double plain = run(request).unexpected();
  request.reliability.lemon_share = 0.01;
  request.reliability.lemon_factor = 41;
  const double with = run(request).unexpected();
  // Lemons in repair do not fail again: each is away for 40.4 h after each of its failures.
  const double extra_per_hour = 40 * 2.34 / 1000 / 24;
  const double expected = 1 + 40 * 20 / (1 + extra_per_hour * 40.4) / 2048;
  // Two Poisson counts of 15,500 and 21,000: 5 sigma is 5.5 %.
  EXPECT_NEAR(with / plain, expected, 0.055 * expected);
  request.reliability.remove_lemons = true;
  const double removed = run(request).unexpected();
  // At most three extra failures of each of the 20 remain.
  EXPECT_LE(removed, plain + 3 * 20);
  EXPECT_LT(removed, with);
}

TEST(FailureSource, pausing_stops_exposure_and_pace_speeds_it_up) {
  const CampaignSpec spec = one_class("nccl_watchdog_timeout", 419 / kLlama3GpuHours, "");
  const std::vector<double> plain = failure_times(spec, 3, 1e6);
  Engine engine;
  std::vector<double> times;
  FailureSource source(engine, spec, 3,
                       [&](const FailureEvent&) { times.push_back(engine.now().seconds()); });
  source.start();
  engine.at(Instant::start() + seconds(1000), [&] { source.pause(); });
  engine.at(Instant::start() + seconds(51'000), [&] {
    source.resume();
    source.set_pace(2);
  });
  engine.run_until(Instant::start() + seconds(500'000));
  ASSERT_GT(times.size(), 20u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_NEAR(times[i], plain[i] <= 1000 ? plain[i] : 51'000 + (plain[i] - 1000) / 2, 1e-3) << i;
  }
}

}  // namespace
}  // namespace herdsim

// Failure processes: superposition, over-dispersion, and which fabric fails how often.
#include "sim/job/failure_source.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

CampaignSpec one_class(std::string name, double rate_per_gpu_hour, std::string law) {
  CampaignRequest request = llama3_request(1);
  request.reliability_base = "none";
  request.classes = {
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

struct Shape {
  double k = 0, variation = 0, mean = 0;
};

// Maximum likelihood of a Weibull's shape by bisection, and the coefficient of variation.
Shape shape_of_gaps(const std::vector<double>& times) {
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(std::max(1e-6, times[i] - times[i - 1]));
  double mean = 0, square = 0, mean_log = 0;
  const auto n = static_cast<double>(gaps.size());
  for (const double gap : gaps)
    mean += gap / n, square += gap * gap / n, mean_log += std::log(gap) / n;
  double low = 0.2, high = 3;
  for (int i = 0; i < 60; ++i) {
    const double k = (low + high) / 2;
    double power = 0, weighted = 0;
    for (const double gap : gaps) {
      const double x = std::pow(gap / mean, k);
      power += x;
      weighted += x * std::log(gap);
    }
    (weighted / power - 1 / k - mean_log < 0 ? low : high) = k;
  }
  return {.k = low, .variation = std::sqrt(square - mean * mean) / mean, .mean = mean};
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
    const Shape shape = shape_of_gaps(times);
    // The estimate of k has a spread of 0.78 / sqrt(n) = 0.012.
    EXPECT_NEAR(shape.k, 1, 0.06);
    EXPECT_NEAR(shape.variation, 1, 0.08);
  }
}

TEST(FailureSource, repeated_failures_of_unmended_parts_look_like_published_logs) {
  // At 3.09 h between failures: Weibull shape 0.72 to 0.78 and variation 1.1 to 1.3, each within
  // 0.05.
  const CampaignSpec spec = one_class("nccl_watchdog_timeout", 419 / kLlama3GpuHours, "clustered");
  const auto times = failure_times(spec, 0, 54 * 86'400.0 * 60);
  const Shape shape = shape_of_gaps(times);
  EXPECT_GT(shape.k, 0.67);
  EXPECT_LT(shape.k, 0.83);
  EXPECT_GT(shape.variation, 1.05);
  EXPECT_LT(shape.variation, 1.35);
  // The rate stays: clusters of mean 4/3 have a variance of count over mean of 1/(1 - 0.25)^2; 5
  // sigma.
  EXPECT_NEAR(static_cast<double>(times.size()) / 60, 419, 5 * std::sqrt(419 * 1.78 / 60));
}

TEST(FailureSource, a_weibull_class_has_its_shape_and_rate) {
  const auto times = failure_times(
      one_class("nccl_watchdog_timeout", 419 / kLlama3GpuHours, "weibull"), 0, 54 * 86'400.0 * 60);
  const Shape shape = shape_of_gaps(times);
  EXPECT_NEAR(shape.k, 0.75, 0.03);
  EXPECT_NEAR(shape.mean, 11'135, 400);
}

TEST(FailureSource, an_empirical_law_draws_from_the_log) {
  CampaignRequest request = llama3_request(1);
  request.reliability_base = "none";
  request.classes = {
      {.name = "nic", .rate_per_hour = 3600 / 300.0 / 16'384, .gaps = {500, 100, 300}}};
  const auto times = failure_times(resolve(request), 0, 3e6);
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 1], 99.9);
    EXPECT_LE(times[i] - times[i - 1], 500.1);
  }
  EXPECT_NEAR(shape_of_gaps(times).mean, 300, 10);
}

TEST(FailureSource, links_and_tors_fail_at_their_published_rates) {
  // HPN: 16.6 NIC-ToR links and 0.9 ToRs in 54 days at 16,384; 200 replicas, 5 sigma.
  CampaignRequest request = llama3_request(200);
  request.reliability_base = "hpn-links";
  const RunResult result = run(request);
  EXPECT_NEAR(result.interruptions(0), 16.6, 5 * std::sqrt(16.6 / 200) + 0.05);
  EXPECT_NEAR(result.interruptions(1), 0.93, 5 * std::sqrt(0.93 / 200) + 0.05);
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

// The published window, by default parameters of which none was fitted to it.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/models/queueing.h"
#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

const RunResult& window() {
  static const RunResult result = run(llama3_request(1500));
  return result;
}

// The mean over 1,500 replicas has a standard error of 0.53: 1 % is 8 sigma.
TEST(Llama3, has_419_unexpected_and_47_planned_interruptions_in_the_mean) {
  EXPECT_NEAR(window().unexpected() / 419, 1, 0.01);
  EXPECT_NEAR(window().planned(), 47, 0.5);
  EXPECT_NEAR(54 * 24 / window().unexpected(), 3.09, 0.02 * 3.09);
  EXPECT_NEAR(window().mean_time_between_interruptions_seconds() / 3600, 2.78, 0.02 * 2.78);
}

TEST(Llama3, trains_effectively_for_90_to_95_per_cent) {
  EXPECT_GT(window().effective_training_time(), 0.90);
  EXPECT_LT(window().effective_training_time(), 0.95);
  EXPECT_GT(window().kept_step_share(), window().effective_training_time());
}

// Each count is Poisson, so the share of runs inside a band is known exactly; 19 comparisons at 4.5
// sigma, 1.3e-4 in all.
TEST(Llama3, counts_of_each_class_spread_as_poisson_numbers) {
  const auto n = static_cast<double>(window().replicas.size());
  for (size_t c = 0; c < window().class_names.size(); ++c) {
    if (window().class_planned[c]) continue;
    const double published =
        std::round(find_failure_class(window().class_names[c])->rate_per_hour * kLlama3GpuHours);
    const Band band = poisson_band(published);
    double inside = 0, mean = 0, square = 0;
    for (const ReplicaResult& replica : window().replicas) {
      const auto count = static_cast<double>(replica.by_class[c]);
      inside += count >= band.low && count <= band.high ? 1 / n : 0;
      mean += count / n;
      square += count * count / n;
    }
    const double p = poisson_cdf(published, static_cast<int64_t>(std::floor(band.high))) -
                     poisson_cdf(published, static_cast<int64_t>(std::ceil(band.low)) - 1);
    EXPECT_NEAR(inside, p, 4.5 * std::sqrt(p * (1 - p) / n)) << window().class_names[c];
    // A band around two events does not reach zero, which happens in 13.5 % of runs.
    EXPECT_GT(inside, published <= 2 ? 0.83 : 0.925) << window().class_names[c];
    EXPECT_NEAR(mean, published, 4.5 * std::sqrt(published / n)) << window().class_names[c];
    // Variance over mean of a Poisson number; its own spread is sqrt((2 + 1/mean) / n).
    EXPECT_NEAR((square - mean * mean) / mean, 1, 4.5 * std::sqrt((2 + 1 / published) / n))
        << window().class_names[c];
  }
}

TEST(Llama3, one_run_stays_inside_the_poisson_band_of_its_total) {
  double inside = 0;
  for (const ReplicaResult& replica : window().replicas) {
    int64_t total = -replica.planned;
    for (const int64_t count : replica.by_class) total += count;
    inside += total >= 379 && total <= 460 ? 1 : 0;
  }
  EXPECT_GT(inside / static_cast<double>(window().replicas.size()), 0.93);
}

TEST(Llama3, corruptions_are_few_and_costly) {
  // One in nine days, a fifth of the loss: what the sensitivity must find.
  CampaignRequest request = llama3_request(80);
  const CampaignSpec spec = resolve(request);
  const PaceOfTheSlowest model({.nominal = request.nominal_step, .data_parallel = 128});
  RunResult result = run_campaign(spec, model, {.threads = 2});
  rank_contributions(spec, model, {.threads = 2}, result);
  ASSERT_EQ(result.contributions.size(), 20u);
  EXPECT_FALSE(result.without_stragglers);  // the day's heat is nobody's fault
  EXPECT_EQ(result.contributions[0].name, "faulty_gpu");
  EXPECT_EQ(result.contributions[1].name, "silent_data_corruption");
  for (size_t i = 1; i < result.contributions.size(); ++i) {
    EXPECT_LE(result.contributions[i].gain, result.contributions[i - 1].gain);
  }
  for (const Contribution& part : result.contributions) EXPECT_GT(part.gain, 0) << part.name;
}

TEST(Llama3, the_day_swings_the_step_by_one_to_two_per_cent) {
  CampaignRequest request = llama3_request(1);
  request.reliability.base = "none";
  request.reliability.slow = {{.name = "diurnal_clock"}};
  const CampaignSpec spec = resolve(request);
  CampaignTrace trace;
  const PaceOfTheSlowest model(
      {.nominal = request.nominal_step, .data_parallel = 128, .network_share = 0});
  const RunResult result = run_campaign(spec, model, {.trace = &trace});
  double low = 1e9, high = 0;
  for (const CampaignTrace::Pace& pace : trace.pace) {
    low = std::min(low, pace.steps_per_hour);
    high = std::max(high, pace.steps_per_hour);
  }
  EXPECT_GT(1 - low / high, 0.0095);
  EXPECT_LT(1 - low / high, 0.0205);
  const double slowdown = result.time_account_seconds()[static_cast<size_t>(RunTerm::kSlowdown)];
  EXPECT_NEAR(slowdown / result.mean_horizon_seconds(), (1 - low / high) / 2, 0.001);
}

}  // namespace
}  // namespace herdsim

// The closed forms against each other, against limits, and against printed points.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "sim/models/clock_power.h"
#include "sim/models/gaussian.h"
#include "sim/models/queueing.h"
#include "sim/models/young_daly.h"

namespace herdsim {
namespace {

TEST(YoungDaly, reproduces_the_printed_intervals) {
  const auto young = [](double write) { return young_interval({.mtbf = 11'135, .write = write}); };
  EXPECT_NEAR(young(0.6), 116, 0.5);
  EXPECT_NEAR(young(10), 472, 0.5);
  EXPECT_NEAR(young(30), 817, 0.5);
  EXPECT_NEAR(young(51), 1066, 0.6);
  EXPECT_NEAR(young(300), 2585, 0.5);
  EXPECT_NEAR(young_interval_with_restart({.mtbf = 6000, .restart = 600, .write = 10}), 363.3,
              0.05);
  EXPECT_NEAR(period_including_write({.mtbf = 6000, .restart = 600, .write = 10}), 373.5, 0.05);
}

TEST(YoungDaly, daly_is_close_to_the_best_interval_of_the_exact_form) {
  for (const double write : {0.6, 10.0, 300.0, 2000.0}) {
    const CheckpointProblem problem{.mtbf = 11'135, .restart = 600, .write = write};
    double best = 0, best_interval = 0;
    for (double interval = 1; interval < 20'000; interval *= 1.002) {
      CheckpointProblem at = problem;
      at.interval = interval;
      if (ettr_exact(at) > best) best = ettr_exact(at), best_interval = interval;
    }
    EXPECT_NEAR(daly_interval(problem) / best_interval, 1, 0.01) << "write " << write;
  }
}

TEST(YoungDaly, forms_agree_where_failures_are_rare) {
  const CheckpointProblem p{.mtbf = 1e7, .restart = 300, .interval = 600, .write = 1};
  EXPECT_NEAR(ettr_first_order(p), ettr_exact(p), 1e-7);
  EXPECT_NEAR(ettr_exact(p), ettr_exact_failing_restarts(p), 1e-8);
  const CheckpointProblem no_loss{.mtbf = 5000, .restart = 600, .interval = 1e-6, .write = 0};
  EXPECT_NEAR(ettr_exact(no_loss), ettr_renewal(no_loss), 1e-9);
}

TEST(YoungDaly, restarts_that_fail_cost_more_and_repeat_by_the_exponential) {
  for (const double restart : {10.0, 600.0, 5000.0}) {
    const CheckpointProblem p{.mtbf = 3000, .restart = restart, .interval = 300, .write = 1};
    EXPECT_LT(ettr_exact_failing_restarts(p), ettr_exact(p)) << restart;
    EXPECT_NEAR(attempts_per_recovery(p), std::exp(restart / 3000), 1e-12);
  }
}

TEST(YoungDaly, tiers_add_up_and_one_tier_is_the_first_order_loss) {
  const CheckpointProblem p{
      .mtbf = 11'135, .restart = 600, .interval = 300, .write = 0.6, .persist = 51};
  const std::vector<CheckpointTierProblem> one = {{.problem = p}};
  EXPECT_NEAR(1 - tiered_loss(one),
              ettr_first_order(p) * (1 + p.write / p.interval) - p.write / p.interval, 1e-12);
  const std::vector<CheckpointTierProblem> two = {{.problem = p, .detection = 10},
                                                  {.problem = p, .detection = 10}};
  EXPECT_NEAR(tiered_loss(two), 2 * tiered_loss({two.data(), 1}), 1e-12);
}

TEST(YoungDaly, replica_level_recovery_approaches_the_stall_alone) {
  const CheckpointProblem p{.mtbf = 1080, .restart = 600};
  EXPECT_NEAR(ettr_replica_level(p, 180, 1e9), 1 - 180.0 / 1080, 1e-6);
  EXPECT_DOUBLE_EQ(ettr_replica_level(p, 0, 1), 1 - 600.0 / 1080);
  EXPECT_DOUBLE_EQ(corruption_loss({.restart = 600, .interval = 300}, 14'400), 15'150);
}

TEST(Spares, as_many_as_a_poisson_number_of_hosts_in_repair) {
  const double mean = 2048 * 3.79 / 1000 / 24 * 40.4;
  EXPECT_NEAR(mean, 13.1, 0.05);
  EXPECT_EQ(poisson_quantile(mean, 0.99), 22);
  EXPECT_EQ(poisson_quantile(mean, 0.999), 26);
  const double rsc = 2048 * 6.5 / 1000 / 24 * 40.4;
  EXPECT_EQ(poisson_quantile(rsc, 0.99), 34);
  EXPECT_EQ(poisson_quantile(rsc, 0.999), 38);
}

TEST(Poisson, tail_and_cdf_are_complements_and_bands_invert_them) {
  for (const double mean : {0.3, 2.0, 13.1, 419.0}) {
    for (const int64_t k : {0, 1, 5, 20, 400, 450}) {
      EXPECT_NEAR(poisson_cdf(mean, k) + poisson_tail(mean, k), 1, 1e-12) << mean << " " << k;
    }
  }
  // Garwood bands as printed for the 54 days.
  for (const auto& [count, low, high] : {std::tuple{148.0, 125.1, 173.9},
                                         {72.0, 56.3, 90.7},
                                         {7.0, 2.8, 14.4},
                                         {2.0, 0.2, 7.2},
                                         {419.0, 379.8, 461.1}}) {
    const Band band = poisson_band(count);
    EXPECT_NEAR(band.low, low, 0.06) << count;
    EXPECT_NEAR(band.high, high, 0.06) << count;
  }
}

TEST(Queues, one_server_is_pollaczek_khinchine_and_many_never_wait) {
  const double rate = 0.01, service = 60, cs2 = lognormal_squared_variation(1.0);
  EXPECT_NEAR(cs2, 1.72, 0.005);
  const double second_moment = service * service * (1 + cs2);
  EXPECT_NEAR(shared_storage_wait(rate, service, cs2),
              rate * second_moment / (2 * (1 - rate * service)), 1e-9);
  EXPECT_LT(mean_wait(rate, service, 1, 20), 1e-9);
  EXPECT_TRUE(std::isinf(mean_wait(rate, service, 1, 0)) || mean_wait(rate, 200, 1, 1) > 1e9);
  double last = mean_wait(rate, service, 1, 1);
  for (int64_t c = 2; c < 6; ++c) {
    EXPECT_LT(mean_wait(rate, service, 1, c), last) << c;
    last = mean_wait(rate, service, 1, c);
  }
}

TEST(Gaussian, quantile_inverts_the_cdf) {
  for (double p = 1e-12; p < 1; p = p < 0.01 ? p * 10 : p + 0.0131) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-12) << p;
  }
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-14);
}

TEST(Gaussian, the_slowest_of_many_matches_tables_of_order_statistics) {
  EXPECT_EQ(expected_normal_maximum(1), 0);
  EXPECT_NEAR(expected_normal_maximum(2), 1 / std::sqrt(std::numbers::pi), 1e-4);
  EXPECT_NEAR(expected_normal_maximum(10), 1.53875, 2e-4);
  EXPECT_NEAR(expected_normal_maximum(100), 2.50759, 2e-4);
  EXPECT_NEAR(expected_normal_maximum(1000), 3.24144, 2e-4);
  // Often quoted as 3.95 and 3.41, which is Blom's approximation or thereabouts: within 1 %.
  EXPECT_NEAR(expected_normal_maximum(16'384) / 3.95, 1, 0.01);
  EXPECT_NEAR(expected_normal_maximum(2'048) / 3.41, 1, 0.01);
}

TEST(Clock, caps_and_heat_follow_the_power_law) {
  const ClockPowerModel model;
  EXPECT_NEAR(clock_factor_under_cap(model, 650), 0.969, 5e-4);
  EXPECT_NEAR(clock_factor_under_cap(model, 600), 0.937, 5e-4);
  EXPECT_NEAR(clock_factor_under_cap(model, 500), 0.867, 5e-4);
  EXPECT_EQ(clock_factor_under_cap(model, 900), 1);
  EXPECT_NEAR(clock_factor_at(model, 8), 0.992, 5e-4);
  EXPECT_NEAR(clock_factor_at(model, 10), 0.990, 5e-4);
  const ClockPowerModel leaky{.leakage_w = 120, .leakage_per_kelvin = 0.02};
  EXPECT_NEAR(clock_factor_at(leaky, 8), 0.985, 5e-4);
  EXPECT_NEAR(clock_factor_at(leaky, 10), 0.980, 6e-4);
  EXPECT_DOUBLE_EQ(clock_factor_at(model, 0), 1);
}

// The mean over a mix is at the cap: watts of products follow the clock, those of the others do
// not.
TEST(Clock, a_step_that_waits_leaves_its_products_more_of_a_power_cap) {
  const ClockPowerModel model;
  EXPECT_NEAR(clock_factor_of_mix(model, 500, {.products = 0.85, .memory = 0.15}), 0.80, 0.01);
  EXPECT_NEAR(clock_factor_of_mix(model, 500, {.products = 0.65, .memory = 0.15, .waiting = 0.20}),
              0.845, 0.01);
  double before = 0;
  for (const double waiting : {0.0, 0.1, 0.2, 0.3, 0.5}) {
    const PowerMix mix{.products = 1 - waiting, .waiting = waiting};
    const double factor = clock_factor_of_mix(model, 450, mix);
    EXPECT_GT(factor, before) << waiting;
    EXPECT_DOUBLE_EQ(
        clock_factor_of_mix(model, 450, {.products = 2 * mix.products, .waiting = 2 * waiting}),
        factor);
    EXPECT_EQ(clock_factor_of_mix(model, 700, mix), 1);
    before = factor;
  }
  EXPECT_LE(clock_factor_of_mix(model, 690, {.products = 0.1, .waiting = 0.9}), 1);
  EXPECT_EQ(clock_factor_of_mix(model, 10, {.products = 1}), 0);
}

TEST(Clock, a_day_swings_by_its_amplitude_and_repeats) {
  for (const double amplitude : {0.01, 0.02}) {
    double low = 2, high = 0, mean = 0;
    for (int i = 0; i < 2400; ++i) {
      const double t = diurnal_throughput(amplitude, i / 100.0, 14.5);
      EXPECT_NEAR(t, diurnal_throughput(amplitude, i / 100.0 + 24, 14.5), 1e-12);
      low = std::min(low, t), high = std::max(high, t), mean += t / 2400;
    }
    EXPECT_NEAR(high - low, amplitude, 1e-6);
    EXPECT_NEAR(1 - mean, amplitude / 2, 1e-6);
    EXPECT_NEAR(diurnal_throughput(amplitude, 14.5, 14.5), 1 - amplitude, 1e-12);
  }
}

}  // namespace
}  // namespace herdsim

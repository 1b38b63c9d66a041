// Series of samples: what they tell, when there are enough, and who runs the loop.
#include "calibrate/harness/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "calibrate/harness/benchmark_series.h"
#include "sim/base/rng.h"

namespace herdsim {
namespace {

TEST(Sampling, a_median_is_within_its_error_as_often_as_it_says) {
  // Normal samples: |median - truth| < 3 errors in 99.7 %; below 97 % of 1,000 series is a chance
  // under 1e-6.
  RngStream random(3, "tests/sampling", 0);
  int inside = 0;
  for (int series = 0; series < 1000; ++series) {
    std::vector<Sample> samples;
    for (int i = 0; i < 101; ++i) {
      double sum = -6;
      for (int j = 0; j < 12; ++j) sum += random.uniform();
      samples.push_back({1 + 0.05 * sum});
    }
    const SeriesSummary s = summarize(samples);
    inside += std::abs(s.seconds - 1) < 3 * s.relative_error ? 1 : 0;
  }
  EXPECT_GT(inside, 970);
}

TEST(Sampling, one_disturbance_in_three_moves_nothing_much) {
  std::vector<Sample> samples;
  for (int i = 0; i < 30; ++i) samples.push_back({i % 3 == 0 ? 50.0 : 1.0 + 1e-3 * i});
  EXPECT_NEAR(summarize(samples).seconds, 1.0, 0.04);
}

TEST(Sampling, throttled_samples_are_counted_and_left_out_while_they_are_few) {
  std::vector<Sample> samples;
  for (int i = 0; i < 10; ++i) samples.push_back({1.0, 1980});
  for (int i = 0; i < 4; ++i) samples.push_back({1.5, 1400});
  EXPECT_EQ(summarize(samples).throttled, 4);
  EXPECT_DOUBLE_EQ(summarize(samples).seconds, 1.0);
  for (int i = 0; i < 20; ++i) samples.push_back({1.5, 1400});
  EXPECT_DOUBLE_EQ(summarize(samples).seconds, 1.5);
}

TEST(Sampling, says_what_slowed_most_samples) {
  std::vector<Sample> samples(3, {1.0, 1980, 690, Slowdown::kPower});
  samples.resize(6, {1.0, 1980, 690, Slowdown::kNone});
  EXPECT_EQ(summarize(samples).slowdown, Slowdown::kNone);
  samples.push_back({1.0, 1980, 690, Slowdown::kPower});
  EXPECT_EQ(summarize(samples).slowdown, Slowdown::kPower);
  EXPECT_EQ(stop_reason_text(StopReason::kPrecise, Slowdown::kPower),
            "precise, at the power limit");
  EXPECT_EQ(stop_reason_text(StopReason::kOutOfTime), "out of time");
}

TEST(Sampling, stops_when_precise_and_else_when_out_of_samples_or_time) {
  const StoppingRule rule{
      .relative_error = 0.01, .least_samples = 5, .most_samples = 20, .most_seconds = 1};
  const auto at = [](double error, int64_t samples) {
    return SeriesSummary{.seconds = 1, .relative_error = error, .samples = samples};
  };
  EXPECT_EQ(stop_reason(at(0, 4), 0, rule), StopReason::kGoOn);
  EXPECT_EQ(stop_reason(at(0.01, 5), 0, rule), StopReason::kPrecise);
  EXPECT_EQ(stop_reason(at(0.5, 19), 0, rule), StopReason::kGoOn);
  EXPECT_EQ(stop_reason(at(0.5, 20), 0, rule), StopReason::kOutOfSamples);
  EXPECT_EQ(stop_reason(at(0.5, 2), 9, rule), StopReason::kGoOn);
  EXPECT_EQ(stop_reason(at(0.5, 3), 9, rule), StopReason::kOutOfTime);
}

TEST(Sampling, asks_for_as_many_as_precision_needs_and_time_allows) {
  const StoppingRule rule{
      .relative_error = 0.01, .least_samples = 5, .most_samples = 100, .most_seconds = 1};
  const auto at = [](double error, int64_t samples) {
    return SeriesSummary{.seconds = 1, .relative_error = error, .samples = samples};
  };
  EXPECT_EQ(next_batch({}, 0, 1e-3, rule), 5);
  // A fifth less precise: 20 x 1.2^2 = 28.8 of them.
  EXPECT_EQ(next_batch(at(0.012, 20), 0, 1e-3, rule), 9);
  EXPECT_EQ(next_batch(at(0.5, 20), 0, 1e-3, rule), 20) << "at most as many as there are";
  EXPECT_EQ(next_batch(at(0.0100001, 20), 0, 1e-3, rule), 1);
  EXPECT_EQ(next_batch(at(0.5, 90), 0, 1e-3, rule), 10) << "at most as many as the rule allows";
  EXPECT_EQ(next_batch(at(0.5, 20), 0.5, 0.1, rule), 5) << "as many as the time allows";
  EXPECT_EQ(next_batch({}, 0.9, 10, rule), 3) << "three, however long they take";
  EXPECT_EQ(next_batch(at(0.5, 1), 0.9, 10, rule), 2);
}

TEST(BenchmarkSeries, counts_what_the_device_tells_and_not_what_the_clock_says) {
  int calls = 0;
  const SampleBatch batch =
      time_by_benchmark("gemm bf16 (a+b)* [", {.flops = 6e12, .bytes = 3e9}, 3,
                        [&] { return Sample{.seconds = 1.0 + calls++, .clock_mhz = 1980}; });
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(batch.samples.size(), 3u);
  EXPECT_DOUBLE_EQ(batch.samples[2].seconds, 3);
  EXPECT_DOUBLE_EQ(batch.samples[2].clock_mhz, 1980);
  // Of 1, 2 and 3 seconds, though the test takes none.
  EXPECT_DOUBLE_EQ(batch.mean_seconds, 2);
  EXPECT_DOUBLE_EQ(batch.flops_per_second, 3e12);
  EXPECT_DOUBLE_EQ(batch.bytes_per_second, 1.5e9);
}

TEST(BenchmarkSeries, throws_what_the_device_threw_and_runs_again_in_the_same_process) {
  int calls = 0;
  const auto breaks = [&]() -> Sample {
    if (++calls == 2) throw std::runtime_error("unplugged");
    return {.seconds = 1};
  };
  try {
    time_by_benchmark("p", {}, 5, breaks);
    ADD_FAILURE() << "took samples of a broken device";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "unplugged");
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(time_by_benchmark("p", {}, 5, breaks).samples.size(), 5u);
}

TEST(BenchmarkSeries, says_nothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  time_by_benchmark("p", {.flops = 1}, 2, [] { return Sample{.seconds = 1e-3}; });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Sampling, tells_the_clock_and_the_power_that_most_samples_had) {
  std::vector<Sample> samples;
  for (int i = 0; i < 5; ++i) samples.push_back({1.0, 1980, 690});
  samples.push_back({1.5, 1400, 500});
  EXPECT_DOUBLE_EQ(summarize(samples).clock_mhz, 1980);
  EXPECT_DOUBLE_EQ(summarize(samples).watts, 690);
}

}  // namespace
}  // namespace herdsim

// Fits find again what made-up tables were made from, through the noise and the spikes that real
// tables have.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "calibrate/fit/attention_fit.h"
#include "calibrate/fit/collective_fit.h"
#include "calibrate/fit/gemm_fit.h"
#include "calibrate/fit/stream_fit.h"
#include "calibrate/profile/profile_check.h"
#include "calibrate/profile/profile_file.h"
#include "sim/models/compute_time.h"
#include "sim/models/gemm_tiles.h"
#include "tests/calibrate/small_profile.h"

namespace herdsim {
namespace {

// 3 % noise, and every twentieth row 8 to 30 % too slow.
class Disturbance {
 public:
  explicit Disturbance(uint64_t seed) : random_(seed) {}
  double factor() {
    double f = std::exp(noise_(random_));
    if (random_() % 20 == 0) f *= spike_(random_);
    return f;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> noise_{0, 0.03};
  std::uniform_real_distribution<double> spike_{1.08, 1.3};
};

// Peak and memory rate of the small profile, 70 % of one plus 85 % of the other; 8 % slower from 1
// ms when sustained.
double made_up_body(double m, double n, double k, bool sustained) {
  const double body = 2 * m * n * k / 0.7e15 + 2 * (m * n + n * k + m * k) / 2.55e12 + 1e-6;
  return body * (sustained && body > 1e-3 ? 1.08 : 1.0);
}

TEST(GemmFit, finds_a_surface_and_the_power_limit_through_noise_and_spikes) {
  const DeviceProfile device = load_profile_text(small_profile_text(), "p");
  Disturbance disturbance(11);
  std::vector<GemmSource> sources(2);
  sources[0].sustained = true;
  const std::vector<int64_t> sizes = {64, 256, 1024, 2048, 4096, 8192, 16384};
  for (const int64_t m : {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
    for (const int64_t n : sizes) {
      for (const int64_t k : sizes) {
        for (GemmSource& source : sources) {
          const double body = made_up_body(static_cast<double>(m), static_cast<double>(n),
                                           static_cast<double>(k), source.sustained);
          source.rows.push_back(
              {{m, n, k}, "bf16", device.launch_floor.seconds() + body * disturbance.factor()});
        }
      }
    }
  }
  DeviceProfile fitted = device;
  fitted.gemm = {fit_gemm(sources, DataType::kBf16, device, default_gemm_grid())};
  EXPECT_TRUE(fitted.gemm[0].nanoseconds.is_nondecreasing());
  // Where bursts and sustained rows are alike, and in the middle of the limited range.
  EXPECT_NEAR(fitted.gemm[0].sustained.at(3e5), 1.0, 0.02);
  EXPECT_NEAR(fitted.gemm[0].sustained.at(4e6), 1.08, 0.02);
  ErrorTable errors;
  for (const int64_t m : {1024, 3072, 6000, 12000}) {
    for (const int64_t n : {1500, 5120, 9000}) {
      for (const int64_t k : {700, 3000, 12288}) {
        const double expected = made_up_body(static_cast<double>(m), static_cast<double>(n),
                                             static_cast<double>(k), true) +
                                device.launch_floor.seconds();
        errors.add("unseen", gemm_cost({m, n, k}, fitted).time.seconds(), expected);
      }
    }
  }
  EXPECT_LT(errors.summaries()[0].median, 0.03);
  EXPECT_LT(errors.summaries()[0].p90, 0.08);
}

TEST(GemmFit, with_tiles_follows_the_waves_of_shapes_that_it_has_not_seen) {
  DeviceProfile device = load_profile_text(small_profile_text(), "p");
  const GemmTiles tiles{.tiles = {{256, 128, 4000, 24}, {128, 128, 3000, 14}, {64, 64, 2000, 5}},
                        .slices = {1, 2, 4},
                        .slicing_nanoseconds = 1000,
                        .partial_sum_bytes_per_second = 2e12,
                        .memory_bytes_per_second = 2.4e12,
                        .scale_nanoseconds = 10000,
                        .exponent = 0.9};
  // The tiles themselves and, as no kernel is quite what a model says, up to 10 % more where n is
  // large.
  const auto seconds = [&](const GemmShape& s) {
    const double more = 1 + 0.1 * static_cast<double>(s.n) / 8192;
    return device.launch_floor.seconds() +
           1e-5 * (std::pow(tile_factor(tiles, s, device.sms), 1 / 0.9) - 1) * more;
  };
  Disturbance disturbance(17);
  std::vector<GemmSource> sources(1);
  for (int64_t m = 128; m <= 8192; m += m < 2048 ? 128 : 512) {
    for (const int64_t n : {512, 1024, 2048, 4096, 8192}) {
      for (const int64_t k : {512, 1024, 2048, 4096, 8192})
        sources[0].rows.push_back({{m, n, k}, "bf16", seconds({m, n, k}) * disturbance.factor()});
    }
  }
  const auto errors_of = [&](const GemmGrid& grid) {
    DeviceProfile fitted = device;
    fitted.gemm = {fit_gemm(sources, DataType::kBf16, device, grid, {.index = 0})};
    EXPECT_TRUE(fitted.gemm[0].nanoseconds.is_nondecreasing());
    ErrorTable errors;
    for (const GemmMeasurement& row : sources[0].rows) {
      if (fold_of(row) != 0) continue;
      errors.add("unseen", gemm_cost(row.shape, fitted).time.seconds(), seconds(row.shape));
    }
    return errors.summaries()[0];
  };
  const ErrorSummary with = errors_of(tiled_gemm_grid(tiles)),
                     without = errors_of(default_gemm_grid());
  EXPECT_LT(with.median, 0.04);
  EXPECT_LT(with.p90, 0.09);
  EXPECT_GT(without.p90, 1.5 * with.p90) << "nothing to find";
}

TEST(AttentionFit, finds_the_rates_of_a_kernel_and_takes_a_frameworks_overhead_away) {
  const int64_t sms = 132;
  DeviceProfile truth = load_profile_text(small_profile_text(), "p");
  truth.sms = sms;
  AttentionKernel kernel{.name = "made up"};
  kernel.curves = {{.pass = AttentionPass::kForward,
                    .causal = true,
                    .head_dim = 128,
                    .teraflops = LogCurve({{128, 100}, {1024, 400}, {16384, 650}})}};
  kernel.fill = LogCurve({{0.0075, 0.008}, {0.5, 0.45}, {1, 0.7}, {4, 0.95}, {16, 1}});
  truth.attention = {};
  const AttentionKernelId id = truth.attention.push_back(kernel);
  const AttentionOverhead overhead{
      .call_seconds = 8e-6, .token_seconds = 5e-10, .kv_byte_seconds = 7e-13};
  Disturbance disturbance(12);
  std::vector<AttentionMeasurement> rows;
  for (const int64_t batch : {1, 2, 4, 8, 16}) {
    for (const int64_t tokens : {128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
      for (const int64_t heads : {1, 2, 4, 8, 16, 32, 64}) {
        for (const int64_t shared : {1, 4}) {
          const AttentionShape shape{.batch = batch,
                                     .query_tokens = tokens,
                                     .kv_tokens = tokens,
                                     .heads = heads,
                                     .kv_heads = std::max<int64_t>(1, heads / shared),
                                     .head_dim = 128};
          rows.push_back(
              {shape, "made up",
               (attention_cost(shape, id, truth).time.seconds() + overhead.seconds(shape)) *
                   disturbance.factor()});
        }
      }
    }
  }
  const AttentionFitPlan plan{.causal = true,
                              .tiles = {{128, 128, 128}},
                              .tokens = {128, 256, 512, 1024, 2048, 4096, 8192, 16384},
                              .sms = sms};
  const AttentionFit fit = fit_attention({rows}, plan);
  for (const double tokens : {512.0, 1024.0, 4096.0, 16384.0}) {
    EXPECT_NEAR(fit.curves[0].teraflops.at(tokens) / kernel.curves[0].teraflops.at(tokens), 1, 0.08)
        << tokens;
  }
  EXPECT_NEAR(fit.fill.at(1), 0.7, 0.07);
  EXPECT_NEAR(fit.overhead[0].call_seconds, 8e-6, 1e-6);
  // With one head dimension the bytes and the rows of the keys are one quantity: only their sum is
  // found.
  const AttentionShape keys{.batch = 8,
                            .query_tokens = 8192,
                            .kv_tokens = 8192,
                            .heads = 64,
                            .kv_heads = 64,
                            .head_dim = 128};
  EXPECT_NEAR(fit.overhead[0].seconds(keys) / overhead.seconds(keys), 1, 0.2);
}

TEST(AttentionFit, a_printed_rate_comes_back_from_the_kernel_made_of_it) {
  DeviceProfile profile = load_profile_text(small_profile_text(), "p");
  AttentionKernel kernel = profile.attention[AttentionKernelId(0)];
  for (const bool causal : {true, false}) {
    AttentionCurve curve{.causal = causal, .wave_exponent = causal ? 0.0 : 0.8};
    std::vector<PrintedRate> printed;
    for (const int64_t tokens : {512, 2048, 8192}) {
      printed.push_back({{.batch = 16384 / tokens,
                          .query_tokens = tokens,
                          .kv_tokens = tokens,
                          .heads = 16,
                          .kv_heads = 16,
                          .head_dim = 128,
                          .mask_fraction = causal ? 0.5 : 1.0},
                         200 + static_cast<double>(tokens) / 100});
    }
    curve.teraflops = saturated_rates(printed, curve, kernel, profile.sms);
    kernel.curves = {curve};
    profile.attention = {};
    const AttentionKernelId id = profile.attention.push_back(kernel);
    for (const auto& [shape, teraflops] : printed) {
      EXPECT_NEAR(shape.flops().count() / attention_cost(shape, id, profile).time.seconds() *
                      1e-12 / teraflops,
                  1, 1e-4);
    }
  }
}

TEST(StreamFit, finds_the_ramp_and_the_rate_through_noise_and_spikes) {
  Disturbance disturbance(13);
  std::vector<StreamMeasurement> rows;
  const Duration floor = microseconds(2);
  for (int64_t bytes = 1'000'000; bytes < 2'000'000'000; bytes = bytes * 13 / 10) {
    const double seconds =
        floor.seconds() + (4e-6 + static_cast<double>(bytes) / 2.9e12) * disturbance.factor();
    rows.push_back({{Bytes(bytes), StreamClass::kFused}, seconds});
  }
  const StreamFit fit = fit_stream(rows, StreamClass::kFused, floor);
  EXPECT_NEAR(fit.bytes_per_second / 2.9e12, 1, 0.03);
  EXPECT_NEAR(fit.ramp_seconds, 4e-6, 0.4e-6);
}

TEST(CollectiveFit, keeps_the_bend_between_two_protocols_and_little_else) {
  std::vector<CollectiveMeasurement> rows;
  for (int64_t size = 1024; size <= 1 << 30; size *= 2) {
    const double bytes = static_cast<double>(size);
    const double seconds = std::min(10e-6 + bytes / 50e9, 30e-6 + bytes / 400e9);
    rows.push_back({"all_reduce", 8, 1, Bytes(size), seconds, ""});
  }
  const std::vector<CollectiveCurve> curves = fit_collectives(rows, {}, 0.01);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_LE(curves[0].points.size(), 5u);
  for (const CollectiveMeasurement& row : rows) {
    EXPECT_NEAR(collective_seconds(curves[0], row.size) / row.seconds, 1, 0.01) << row.size.count();
  }
}

TEST(CollectiveFit, one_spike_among_repetitions_does_not_lift_what_follows) {
  std::vector<CollectiveMeasurement> rows;
  for (int64_t size = 1024; size <= 1 << 20; size *= 2) {
    for (int repetition = 0; repetition < 3; ++repetition) {
      const bool spike = size == 4096 && repetition == 1;
      rows.push_back({"all_gather", 4, 1, Bytes(size),
                      spike ? 1e-3 : 10e-6 + static_cast<double>(size) / 100e9, ""});
    }
  }
  const CollectiveCurve curve = fit_collectives(rows, {}, 0.01)[0];
  EXPECT_NEAR(collective_seconds(curve, Bytes(8192)), 10e-6 + 8192 / 100e9, 2e-7);
}

TEST(CollectiveFit, a_size_that_was_not_measured_follows_the_kind_that_shares_the_ring) {
  // Both change protocol between 1 and 2 MiB and take half as long again after it; the line from 1
  // to 4 MiB misses that.
  const auto seconds = [](int64_t size, double scale) {
    const double bytes = static_cast<double>(size);
    return scale * (size <= 1 << 20 ? 10e-6 + bytes / 100e9 : 33e-6 + bytes / 400e9);
  };
  std::vector<CollectiveMeasurement> rows;
  for (int64_t size = 1024; size <= 1 << 26; size *= 2) {
    rows.push_back({"reduce_scatter", 4, 1, Bytes(size), seconds(size, 0.95), ""});
    if (size != 2 << 20) rows.push_back({"all_gather", 4, 1, Bytes(size), seconds(size, 1.0), ""});
    if (size != 2 << 20) rows.push_back({"all_to_all", 4, 1, Bytes(size), seconds(size, 1.0), ""});
  }
  const std::vector<CollectiveCurve> curves = fit_collectives(rows, {}, 0.01);
  ASSERT_EQ(curves.size(), 3u);
  const double expected = seconds(2 << 20, 1.0);
  EXPECT_NEAR(collective_seconds(curves[1], mebibytes(2)) / expected, 1, 0.01);
  EXPECT_LT(collective_seconds(curves[2], mebibytes(2)) / expected, 0.9)
      << "nobody shares its steps";
}

TEST(CrossValidation, a_shape_and_its_repetitions_are_in_one_fold_and_folds_are_even) {
  std::array<int, kFolds> counts{};
  for (int64_t m = 18; m < 4096; m += 2) {
    const GemmMeasurement even{{m, 1024, 512}, "bf16", 1}, odd{{m + 1, 1024, 512}, "fp8", 2};
    EXPECT_EQ(fold_of(even), fold_of(odd));
    ++counts[static_cast<size_t>(fold_of(even))];
  }
  // 2,039 shapes: 408 a fold, give or take 5 standard deviations of 18.
  for (const int count : counts) EXPECT_NEAR(count, 408, 90);
}

TEST(ErrorTable, median_and_p90_are_of_relative_errors) {
  ErrorTable table;
  for (int i = 0; i <= 100; ++i) table.add("g", 100.0 + i, 100.0, {0.5, 0.85});
  const ErrorSummary s = table.summaries()[0];
  EXPECT_EQ(s.count, 101u);
  EXPECT_NEAR(s.median, 0.5, 1e-12);
  EXPECT_NEAR(s.p90, 0.9, 1e-12);
  EXPECT_FALSE(s.meets_goal());
}

}  // namespace
}  // namespace herdsim

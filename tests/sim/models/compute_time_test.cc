// Laws that the cost of a kernel keeps, whatever the profile: quantified over every profile of the
// catalogue.
#include "sim/models/compute_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "calibrate/profile/profile_file.h"
#include "sim/models/gemm_tiles.h"

namespace herdsim {
namespace {

class EveryProfile : public ::testing::TestWithParam<std::string> {
 protected:
  const DeviceProfile profile_ = load_profile(GetParam());
};

// Log-uniform whole numbers.
int64_t size_between(std::mt19937_64& random, double low, double high) {
  std::uniform_real_distribution<double> at(std::log(low), std::log(high));
  return static_cast<int64_t>(std::exp(at(random)));
}

// Scores that go through memory cost more than a kernel that keeps them on chip, and more bytes a
// FLOP with a smaller head dimension.
TEST_P(EveryProfile, unfused_attention_takes_half_as_long_again_as_the_best_fused_kernel) {
  const std::optional<AttentionKernelId> unfused = profile_.attention_kernel("unfused");
  ASSERT_TRUE(unfused);
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    double before = 0;
    for (const int64_t head_dim : {64, 128, 256}) {
      const AttentionShape shape{.batch = 4,
                                 .query_tokens = 2048,
                                 .kv_tokens = 2048,
                                 .heads = 32,
                                 .kv_heads = 32,
                                 .head_dim = head_dim,
                                 .pass = pass};
      const KernelCost slow = attention_cost(shape, *unfused, profile_);
      Duration best = slow.time;
      for (size_t k = 0; k < profile_.attention.size(); ++k) {
        best = std::min(best, attention_cost(shape, AttentionKernelId(k), profile_).time);
      }
      EXPECT_LT(best.seconds() * 1.5, slow.time.seconds()) << head_dim;
      EXPECT_GT(slow.of_peak.value(), before);
      before = slow.of_peak.value();
    }
  }
}

TEST_P(EveryProfile, no_product_beats_the_peak_or_the_launch_floor) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto dtype = static_cast<DataType>(i % 4);
    const GemmShape shape{size_between(random, 1, 1e6), size_between(random, 1, 2e5),
                          size_between(random, 1, 2e5), dtype};
    const KernelCost cost = gemm_cost(shape, profile_);
    ASSERT_GE(cost.time, profile_.launch_floor);
    // Types that a device lacks run as bf16.
    double peak = profile_.peak_of(dtype).per_second();
    if (peak <= 0) peak = profile_.peak_of(DataType::kBf16).per_second();
    ASSERT_LE(shape.flops().count() / cost.time.seconds(), peak)
        << shape.m << " " << shape.n << " " << shape.k;
    ASSERT_LE(cost.of_peak.value(), 1.0);
  }
}

TEST_P(EveryProfile, products_of_experts_beat_neither_one_of_them_nor_the_peak_nor_their_weights) {
  std::mt19937_64 random(7);
  const double hbm = static_cast<double>(profile_.hbm_bandwidth.bytes_per_second());
  for (int i = 0; i < 5000; ++i) {
    const auto dtype = static_cast<DataType>(i % 2);
    GemmShape shape{size_between(random, 1, 1e5), size_between(random, 64, 3e4),
                    size_between(random, 64, 3e4), dtype};
    const Duration one = gemm_cost(shape, profile_).time;
    Duration before = one;
    for (shape.groups = 2; shape.groups <= 256; shape.groups *= 4) {
      const KernelCost cost = gemm_cost(shape, profile_);
      ASSERT_GE(cost.time, before) << "more experts with as many tokens each";
      ASSERT_LE(cost.of_peak.value(), 1.0);
      const double weights = static_cast<double>(shape.groups * shape.n * shape.k *
                                                 bytes_per_element(dtype));
      ASSERT_GE(cost.time.seconds(), weights / hbm);
      before = cost.time;
    }
  }
}

TEST_P(EveryProfile, larger_products_never_take_less_time) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> growth(1.0, 1.5);
  for (int i = 0; i < 20000; ++i) {
    const GemmShape shape{
        size_between(random, 1, 3e5), size_between(random, 1, 2e5), size_between(random, 1, 2e5),
        i % 2 == 0 ? DataType::kBf16 : DataType::kFp8, static_cast<GemmPass>(i % 3)};
    const Duration time = gemm_cost(shape, profile_).time;
    for (int64_t GemmShape::*size : {&GemmShape::m, &GemmShape::n, &GemmShape::k}) {
      GemmShape larger = shape;
      larger.*size =
          static_cast<int64_t>(std::ceil(static_cast<double>(shape.*size) * growth(random)));
      // A tick is left to rounding.
      ASSERT_GE(gemm_cost(larger, profile_).time + nanoseconds(1), time)
          << shape.m << " " << shape.n << " " << shape.k << " to " << larger.m << " " << larger.n
          << " " << larger.k;
    }
  }
}

// One kind of tile, no slices, memory without limit: the factor is 1 plus the waves.
GemmTiles plain_tiles() {
  return {.tiles = {{128, 256, 1000, 20}},
          .slices = {1},
          .slicing_nanoseconds = 1000,
          .partial_sum_bytes_per_second = 1e12,
          .memory_bytes_per_second = 1e18,
          .scale_nanoseconds = 1000 + 512 * 20};
}

TEST(GemmTiles, a_tile_more_than_the_device_has_sms_costs_a_whole_wave) {
  const GemmTiles tiles = plain_tiles();
  const auto of_tiles = [&](int64_t count) {
    return tile_factor(tiles, {128 * count, 256, 512}, 108);
  };
  for (const int64_t count : {1, 54, 108}) EXPECT_DOUBLE_EQ(of_tiles(count), 2) << count;
  for (const int64_t count : {109, 216}) EXPECT_DOUBLE_EQ(of_tiles(count), 3) << count;
  // A row into the next tile.
  EXPECT_DOUBLE_EQ(tile_factor(tiles, {128 * 108 + 1, 256, 512}, 108), 3);
}

TEST(GemmTiles, few_tiles_are_cut_along_k_where_that_pays) {
  GemmTiles tiles = plain_tiles();
  const GemmShape deep{128, 256, 65536};
  const double whole = tile_factor(tiles, deep, 108);
  tiles.slices = {1, 8};
  tiles.slicing_nanoseconds = 8000;
  // An eighth of the depth, the slicing, and 8 * 8 bytes an element of sums.
  const double sums = 8000 + 8e9 * 8 * 128 * 256 / 1e12;
  EXPECT_DOUBLE_EQ(tile_factor(tiles, deep, 108),
                   1 + (1000 + 65536 / 8 * 20 + sums) / tiles.scale_nanoseconds);
  EXPECT_LT(tile_factor(tiles, deep, 108), whole / 4);
  EXPECT_DOUBLE_EQ(tile_factor(tiles, {128, 256, 512}, 108), 2) << "too shallow to be worth it";
}

TEST(GemmTiles, memory_bounds_what_is_wide_and_shallow_and_the_exponent_softens_the_steps) {
  GemmTiles tiles = plain_tiles();
  tiles.memory_bytes_per_second = 1e12;
  const GemmShape wide{65536, 65536, 32};
  const double bytes = 2.0 * (2.0 * 65536 * 32 + 65536.0 * 65536);
  EXPECT_NEAR(tile_factor(tiles, wide, 10000), 1 + bytes * 1e-3 / tiles.scale_nanoseconds, 1e-9);
  tiles.memory_bytes_per_second = 1e18;
  tiles.exponent = 0.5;
  EXPECT_DOUBLE_EQ(tile_factor(tiles, {128 * 216, 256, 512}, 108), std::sqrt(3.0));
}

TEST(GemmTiles, one_product_of_one_wave_and_one_of_two_are_told_apart_on_an_a100) {
  // 96 and 128 tiles of 256 x 128; measured: 112 and 208 us. A surface alone made it 1.3 times.
  const DeviceProfile a100 = load_profile("a100-sxm4-80gb");
  const double one = gemm_cost({768, 4096, 4096}, a100).time.seconds();
  const double two = gemm_cost({1024, 4096, 4096}, a100).time.seconds();
  EXPECT_NEAR(one, 112e-6, 10e-6);
  EXPECT_NEAR(two / one, 1.85, 0.15);
}

TEST_P(EveryProfile, a_product_of_nothing_costs_nothing) {
  for (const GemmShape& shape : {GemmShape{0, 8, 8}, GemmShape{8, 0, 8}, GemmShape{8, 8, 0}}) {
    EXPECT_EQ(gemm_cost(shape, profile_).time, Duration::zero());
  }
}

TEST_P(EveryProfile, products_outside_the_grid_say_that_they_are_extrapolated) {
  for (const GemmSurface& surface : profile_.gemm) {
    const auto& axes = surface.nanoseconds.axes();
    GemmShape shape{.dtype = surface.dtype};
    shape.m = static_cast<int64_t>(axes[0].nodes().back());
    shape.n = static_cast<int64_t>(axes[1].nodes().back());
    shape.k = static_cast<int64_t>(axes[2].nodes().back());
    EXPECT_FALSE(gemm_cost(shape, profile_).extrapolated);
    const KernelCost border = gemm_cost(shape, profile_);
    shape.m *= 2;
    const KernelCost beyond = gemm_cost(shape, profile_);
    EXPECT_TRUE(beyond.extrapolated);
    // Compute bound: twice the rows, twice the time but for the floor.
    EXPECT_NEAR(beyond.time.seconds() / border.time.seconds(), 2.0, 0.05);
  }
}

TEST_P(EveryProfile, a_type_without_measurements_is_assumed_from_bf16_and_half_precision_is_not) {
  const GemmShape bf16{4096, 4096, 4096, DataType::kBf16};
  GemmShape other = bf16;
  other.dtype = DataType::kFp16;
  EXPECT_EQ(gemm_cost(other, profile_).time, gemm_cost(bf16, profile_).time);
  EXPECT_FALSE(gemm_cost(other, profile_).extrapolated);
  other.dtype = DataType::kFp32;
  const KernelCost fp32 = gemm_cost(other, profile_);
  EXPECT_TRUE(fp32.extrapolated);
  EXPECT_EQ(fp32.evidence, Evidence::kAssumed);
  EXPECT_GT(fp32.time, gemm_cost(bf16, profile_).time);
}

TEST_P(EveryProfile, gradient_layouts_cost_what_their_rates_say) {
  const GemmShape forward{8192, 8192, 4096};
  GemmShape wgrad = forward;
  wgrad.pass = GemmPass::kWgrad;
  const double floor = profile_.launch_floor.seconds();
  const double ratio = (gemm_cost(wgrad, profile_).time.seconds() - floor) /
                       (gemm_cost(forward, profile_).time.seconds() - floor);
  EXPECT_NEAR(ratio, 1 / profile_.gemm[0].wgrad_rate, 1e-5);
}

AttentionShape random_attention(std::mt19937_64& random, AttentionPass pass, double mask) {
  const int64_t tokens = size_between(random, 64, 3e5);
  constexpr std::array<int64_t, 4> kHeadDims = {64, 96, 128, 256};
  return {.batch = size_between(random, 1, 16),
          .query_tokens = tokens,
          .kv_tokens = tokens,
          .heads = size_between(random, 1, 128),
          .kv_heads = 1,
          .head_dim = kHeadDims[random() % kHeadDims.size()],
          .mask_fraction = mask,
          .pass = pass};
}

TEST_P(EveryProfile, attention_never_beats_the_peak_and_more_work_never_takes_less_time) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> growth(1.0, 1.5), mask(0.01, 1.0);
  const double peak = profile_.peak_of(DataType::kBf16).per_second();
  for (size_t kernel = 0; kernel < profile_.attention.size(); ++kernel) {
    const AttentionKernelId id(kernel);
    for (int i = 0; i < 8000; ++i) {
      const double fraction = i % 3 == 0 ? 0.5 : i % 3 == 1 ? 1.0 : mask(random);
      const AttentionShape shape =
          random_attention(random, static_cast<AttentionPass>(i % 2), fraction);
      const KernelCost cost = attention_cost(shape, id, profile_);
      ASSERT_GE(cost.time, profile_.attention[id].floor);
      ASSERT_LE(shape.flops().count() / cost.time.seconds(), peak);
      AttentionShape more_heads = shape, more_batch = shape, more_tokens = shape;
      more_heads.heads =
          static_cast<int64_t>(std::ceil(static_cast<double>(shape.heads) * growth(random)));
      more_batch.batch += 1;
      more_tokens.query_tokens = more_tokens.kv_tokens =
          static_cast<int64_t>(static_cast<double>(shape.kv_tokens) * growth(random));
      for (const AttentionShape& larger : {more_heads, more_batch, more_tokens}) {
        ASSERT_GE(attention_cost(larger, id, profile_).time + nanoseconds(1), cost.time)
            << profile_.attention[id].name << " batch " << shape.batch << " heads " << shape.heads
            << " tokens " << shape.kv_tokens << " mask " << fraction << " head dim "
            << shape.head_dim;
      }
    }
  }
}

TEST_P(EveryProfile, the_backward_pass_takes_longer_than_the_forward_pass) {
  for (size_t kernel = 0; kernel < profile_.attention.size(); ++kernel) {
    for (const int64_t tokens : {1024, 4096, 16384, 131072}) {
      AttentionShape shape{.batch = 1,
                           .query_tokens = tokens,
                           .kv_tokens = tokens,
                           .heads = 16,
                           .kv_heads = 16,
                           .head_dim = 128};
      const Duration forward = attention_cost(shape, AttentionKernelId(kernel), profile_).time;
      shape.pass = AttentionPass::kBackward;
      EXPECT_GT(attention_cost(shape, AttentionKernelId(kernel), profile_).time, forward);
    }
  }
}

TEST_P(EveryProfile, a_looser_mask_never_takes_less_time) {
  for (size_t kernel = 0; kernel < profile_.attention.size(); ++kernel) {
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
      AttentionShape shape{.batch = 1,
                           .query_tokens = 8192,
                           .kv_tokens = 8192,
                           .heads = 16,
                           .kv_heads = 16,
                           .head_dim = 128,
                           .pass = pass};
      Duration before;
      for (double fraction = 0.02; fraction <= 1.0; fraction += 0.02) {
        shape.mask_fraction = fraction;
        const Duration time = attention_cost(shape, AttentionKernelId(kernel), profile_).time;
        EXPECT_GE(time, before) << profile_.attention[AttentionKernelId(kernel)].name << " at "
                                << fraction;
        before = time;
      }
    }
  }
}

TEST_P(EveryProfile, attention_outside_its_curves_says_so) {
  const AttentionKernelId id(0);
  AttentionShape shape{.batch = 4,
                       .query_tokens = 4096,
                       .kv_tokens = 4096,
                       .heads = 32,
                       .kv_heads = 8,
                       .head_dim = 128};
  EXPECT_FALSE(attention_cost(shape, id, profile_).extrapolated);
  shape.query_tokens = shape.kv_tokens = 1 << 20;
  EXPECT_TRUE(attention_cost(shape, id, profile_).extrapolated);
  shape.query_tokens = shape.kv_tokens = 4096;
  shape.head_dim = 192;
  EXPECT_TRUE(attention_cost(shape, id, profile_).extrapolated);
}

TEST_P(EveryProfile,
       streams_and_copies_take_longer_for_more_bytes_and_never_exceed_the_memory_rate) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    const Bytes amount(size_between(random, 1, 1e12));
    const Bytes more = amount + Bytes(size_between(random, 1, 1e10));
    for (const StreamClass stream :
         {StreamClass::kFused, StreamClass::kFramework, StreamClass::kOptimizer}) {
      const KernelCost cost = stream_cost({amount, stream}, profile_);
      ASSERT_LE(amount / profile_.hbm_bandwidth, cost.time) << amount.count();
      ASSERT_LE(cost.time, stream_cost({more, stream}, profile_).time)
          << amount.count() << " " << more.count();
    }
    for (const HostDirection direction : {HostDirection::kToDevice, HostDirection::kToHost}) {
      ASSERT_LE(host_copy_cost(amount, direction, profile_).time,
                host_copy_cost(more, direction, profile_).time);
    }
  }
  EXPECT_EQ(stream_cost({Bytes(0), StreamClass::kFused}, profile_).time, Duration::zero());
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryProfile, ::testing::ValuesIn(profile_names()),
                         [](const auto& profile) {
                           std::string name = profile.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(ComputeTime, a_few_rows_of_an_h100_stream_their_weights) {
  // 8,192 x 8,192 bf16 weights are 134 MB; public tables time 1 to 64 rows at 48 to 56 us.
  const DeviceProfile h100 = load_profile("h100-sxm5-80gb");
  for (const int64_t rows : {1, 8, 16, 64}) {
    const Duration time = gemm_cost({rows, 8192, 8192}, h100).time;
    EXPECT_GE(time, microseconds(46)) << rows;
    EXPECT_LE(time, microseconds(60)) << rows;
  }
}

TEST(ComputeTime, one_row_more_than_a_thousand_costs_more_than_its_share_and_beyond_does_not) {
  const DeviceProfile h100 = load_profile("h100-sxm5-80gb");
  const auto step = [&](int64_t m) {
    return gemm_cost({m + 1, 4096, 4096}, h100).time.seconds() /
               gemm_cost({m, 4096, 4096}, h100).time.seconds() -
           1;
  };
  EXPECT_GT(step(1024), 10.0 / 1024);
  EXPECT_LT(step(4096), 2.0 / 4096);
}

TEST(ComputeTime, a_product_of_a_millisecond_is_slower_sustained_than_in_a_burst) {
  DeviceProfile h100 = load_profile("h100-sxm5-80gb");
  const GemmShape large{8192, 8192, 8192}, small{1024, 4096, 4096};
  const double large_sustained = gemm_cost(large, h100).time.seconds(),
               small_sustained = gemm_cost(small, h100).time.seconds();
  for (GemmSurface& surface : h100.gemm) surface.sustained = LogCurve();
  EXPECT_GT(large_sustained / gemm_cost(large, h100).time.seconds(), 1.03);
  EXPECT_EQ(small_sustained, gemm_cost(small, h100).time.seconds());
}

}  // namespace
}  // namespace herdsim

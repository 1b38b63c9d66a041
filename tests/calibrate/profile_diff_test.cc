#include "calibrate/profile/profile_diff.h"

#include <gtest/gtest.h>

#include "calibrate/profile/profile_check.h"
#include "calibrate/profile/profile_file.h"
#include "sim/models/compute_time.h"
#include "tests/calibrate/small_profile.h"

namespace herdsim {
namespace {

TEST(ProfileDiff, a_profile_does_not_differ_from_itself) {
  for (const std::string& name : profile_names())
    EXPECT_TRUE(diff_profiles(load_profile(name), load_profile(name)).empty());
}

TEST(ProfileDiff, one_changed_number_is_one_difference) {
  const DeviceProfile first = load_profile_text(small_profile_text(), "p");
  struct Change {
    std::string_view from, to, field;
    double ratio;
  };
  for (const Change& c :
       {Change{"sms: 100", "sms: 110", "device.sms", 1.1},
        Change{"20000, 200000", "20000, 220000", "gemm[bf16]", 1.1},
        Change{"[400, 600]", "[400, 660]", "attention[fa3] forward causal 128", 1.1},
        Change{"[500, 2800]", "[500, 1400]", "stream[fused]", 0.5},
        Change{"[1, 390]", "[1, 195]", "peer_copy", 0.5},
        Change{"[25, 325]", "[25, 650]", "collective[all_reduce, 8 ranks, 1 nodes]", 2.0},
        Change{"floor_microseconds: 5", "floor_microseconds: 10",
               "attention[fa3] floor_microseconds", 2.0}}) {
    const auto differences =
        diff_profiles(first, load_profile_text(with(small_profile_text(), c.from, c.to), "p"));
    ASSERT_EQ(differences.size(), 1u) << c.field;
    EXPECT_EQ(differences[0].field, c.field);
    EXPECT_NEAR(differences[0].farthest_ratio, c.ratio, 1e-9);
  }
}

TEST(ProfileDiff, what_only_one_profile_has_is_said_to_be_there) {
  const auto differences =
      diff_profiles(load_profile("h100-sxm5-80gb"), load_profile("a100-sxm4-80gb"));
  const auto has = [&](std::string_view field, std::string_view detail) {
    return std::any_of(differences.begin(), differences.end(), [&](const ProfileDifference& d) {
      return d.field == field && d.detail == detail;
    });
  };
  EXPECT_TRUE(has("gemm[fp8]", "only in the first"));
  EXPECT_TRUE(has("attention[fa3]", "only in the first"));
}

TEST(ProfileCheck, a_profile_predicts_its_own_times_without_error) {
  const DeviceProfile profile = load_profile("h100-sxm5-80gb");
  Measurements rows;
  const GemmShape product{4096, 4096, 4096};
  rows.gemm.push_back({product, "bfloat16", gemm_cost(product, profile).time.seconds()});
  const AttentionShape attention{.batch = 1,
                                 .query_tokens = 4096,
                                 .kv_tokens = 4096,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .head_dim = 128};
  rows.attention.push_back(
      {attention, "vllm_flash_attn_fa3",
       attention_cost(attention, *profile.attention_kernel("fa3"), profile).time.seconds()});
  rows.stream.push_back(
      {{megabytes(500), StreamClass::kFused},
       1.25 * stream_cost({megabytes(500), StreamClass::kFused}, profile).time.seconds()});
  const CollectiveCurve& curve = *profile.collective("all_reduce", 8, 1);
  rows.collective.push_back(
      {"all_reduce", 8, 1, curve.points[2].size, curve.points[2].time.seconds(), ""});
  rows.collective.push_back({"all_reduce", 3, 1, Bytes(1 << 20), 1.0, ""});
  rows.attention.push_back({attention, "torch_flow", 1.0});
  const ProfileCheck check = check_profile(profile, rows);
  for (const ErrorSummary& e : check.errors) {
    EXPECT_NEAR(e.bias, e.group.starts_with("streams") ? -0.2 : 0.0, 1e-6) << e.group;
  }
  EXPECT_EQ(check.errors.size(), 8u);  // four kinds, all and one size each
  EXPECT_EQ(check.not_compared, (std::vector<std::string>{"attention kernel torch_flow",
                                                          "all_reduce of 3 ranks on 1 nodes"}));
  EXPECT_EQ(check.extrapolated, 0u);
}

TEST(ProfileCheck, copies_are_compared_where_the_profile_has_them) {
  const DeviceProfile profile = load_profile_text(small_profile_text(), "p");
  using Kind = CopyMeasurement::Kind;
  Measurements rows;
  const Bytes size(100000);
  rows.copy = {
      {Kind::kToHost, size, host_copy_cost(size, HostDirection::kToHost, profile).time.seconds()},
      {Kind::kPeer, size, 2 * peer_copy_cost(size, PeerDirection::kOneWay, profile).time.seconds()},
      {Kind::kPeerBothWays, size, 1}};
  const ProfileCheck check = check_profile(profile, rows);
  ASSERT_EQ(check.errors.size(), 4u);  // two kinds, all and one size each
  for (const ErrorSummary& e : check.errors)
    EXPECT_NEAR(e.bias, e.group.starts_with("copies to a peer") ? -0.5 : 0.0, 1e-6) << e.group;
  EXPECT_EQ(check.not_compared, std::vector<std::string>{"copies to a peer and back"});
}

TEST(ProfileCheck, time_of_a_collective_never_falls_with_its_size) {
  for (const std::string& name : profile_names()) {
    for (const CollectiveCurve& curve : load_profile(name).collectives) {
      double before = 0;
      for (double size = 1; size < 1e12; size *= 1.3) {
        const double seconds = collective_seconds(curve, Bytes(static_cast<int64_t>(size)));
        ASSERT_GE(seconds, before) << name << " " << curve.kind << " " << curve.ranks;
        before = seconds;
      }
    }
  }
}

}  // namespace
}  // namespace herdsim

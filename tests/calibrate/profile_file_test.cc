#include "calibrate/profile/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "calibrate/profile/profile_diff.h"
#include "sim/base/error.h"
#include "sim/models/compute_time.h"
#include "tests/calibrate/small_profile.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

std::vector<Fault> faults_of(const std::string& text) {
  try {
    load_profile_text(text, "p.textproto");
  } catch (const SpecError& error) {
    return error.faults();
  }
  return {};
}

TEST(ProfileFile, the_small_profile_is_good) {
  EXPECT_TRUE(faults_of(small_profile_text()).empty());
}

TEST(ProfileFile, every_catalogue_profile_loads_and_is_named_as_its_file) {
  ASSERT_GE(profile_names().size(), 3u);
  EXPECT_TRUE(std::is_sorted(profile_names().begin(), profile_names().end()));
  for (const std::string& name : profile_names()) EXPECT_EQ(load_profile(name).name, name);
}

TEST(ProfileFile, every_curve_of_the_catalogue_names_its_source) {
  for (const std::string& name : profile_names()) {
    const DeviceProfile p = load_profile(name);
    EXPECT_FALSE(p.device_provenance.source.empty());
    for (const GemmSurface& s : p.gemm) EXPECT_FALSE(s.provenance.source.empty());
    for (const AttentionKernel& kernel : p.attention) {
      for (const AttentionCurve& curve : kernel.curves)
        EXPECT_FALSE(curve.provenance.source.empty());
    }
    for (const StreamCurve& s : p.stream) EXPECT_FALSE(s.provenance.source.empty());
    for (const CollectiveCurve& c : p.collectives) EXPECT_FALSE(c.provenance.source.empty());
  }
}

TEST(ProfileFile, catalogue_profiles_are_small) {
  for (const std::string& name : profile_names())
    EXPECT_LT(profile_text(name).size(), 60000u) << name;
}

TEST(ProfileFile, what_is_saved_loads_as_the_same_numbers_and_saves_as_the_same_text) {
  for (const std::string& name : profile_names()) {
    const DeviceProfile loaded = load_profile(name);
    const std::string text = save_profile_text(loaded);
    const DeviceProfile again = load_profile_text(text, name);
    EXPECT_EQ(save_profile_text(again), text) << name;
    for (const ProfileDifference& d : diff_profiles(loaded, again)) {
      EXPECT_NEAR(d.farthest_ratio, 1, 1e-3) << d.field << ": " << d.detail;
    }
  }
}

TEST(ProfileFile, what_the_small_file_says_is_what_is_loaded) {
  const DeviceProfile p = load_profile_text(small_profile_text(), "p");
  EXPECT_EQ(p.sms, 100);
  EXPECT_EQ(p.hbm_bandwidth, gigabytes_per_second(3000));
  EXPECT_EQ(p.gemm[0].nanoseconds.value(1, 0, 1), 2000);
  EXPECT_EQ(p.attention[*p.attention_kernel("fa3")].curves[1].measured_from, 4096);
  EXPECT_EQ(p.attention[*p.attention_kernel("fa3")].curves[1].measured_to, 8192);
  EXPECT_FALSE(p.attention_kernel("fa9"));
  const CollectiveCurve* all_reduce = p.collective("all_reduce", 8, 1);
  ASSERT_NE(all_reduce, nullptr);
  EXPECT_NEAR(all_reduce->points[1].bus_bandwidth.gigabytes_per_second(), 67.108864 * 1.75 / 0.325,
              1e-3);
  EXPECT_EQ(p.collective("all_reduce", 8, 2), nullptr);
  EXPECT_NEAR(p.peer_copy[0].bytes_per_second.at(1e6), 390e9, 1);
  EXPECT_TRUE(p.peer_copy[1].bytes_per_second.empty());
}

TEST(ProfileFile, an_unknown_name_lists_the_catalogue_and_the_nearest) {
  try {
    load_profile("h100-sxm5-80g");
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_EQ(error.faults()[0].nearest, "h100-sxm5-80gb");
    EXPECT_THAT(error.faults()[0].allowed, HasSubstr("a100-sxm4-80gb"));
  }
}

TEST(ProfileFile, a_file_is_read_by_its_path_and_a_missing_one_is_a_fault) {
  const std::string path = ::testing::TempDir() + "small.textproto";
  std::ofstream(path) << small_profile_text();
  EXPECT_EQ(load_profile(path).name, "small");
  EXPECT_THROW(load_profile("./no/such/profile.textproto"), SpecError);
}

struct Mistake {
  std::string_view what, from, to;
  // Expected in the first fault: place, field and problem.
  int line;
  std::string_view field, problem;
};

constexpr std::string_view kTilesWithoutOne = R"(  tiles {
    slices: [2, 4]
    tile { rows: 128 columns: 128 start_nanoseconds: 1 nanoseconds_per_k: 1 }
    slicing_nanoseconds: 1
    partial_sum_gigabytes_per_second: 1
    memory_gigabytes_per_second: 1
    scale_nanoseconds: 1
    exponent: 1
    source { evidence: PUBLISHED text: "table" }
  }
)";
constexpr std::string_view kTileOfNoRows = R"(  tiles {
    slices: 1
    tile { rows: 0 columns: 128 start_nanoseconds: 1 nanoseconds_per_k: 1 }
    slicing_nanoseconds: 1
    partial_sum_gigabytes_per_second: 1
    memory_gigabytes_per_second: 1
    scale_nanoseconds: 1
    exponent: 1
    source { evidence: PUBLISHED text: "table" }
  }
)";
constexpr std::string_view kSteepTiles = R"(  tiles {
    slices: 1
    tile { rows: 128 columns: 128 start_nanoseconds: 1 nanoseconds_per_k: 1 }
    slicing_nanoseconds: 1
    partial_sum_gigabytes_per_second: 1
    memory_gigabytes_per_second: 1
    scale_nanoseconds: 1
    exponent: 1.5
    source { evidence: PUBLISHED text: "table" }
  }
)";

// One row a kind of mistake.
const Mistake kMistakes[] = {
    {"hole in a grid", "900, 2000, 20000", "900, 20000", 20, "gemm[0].nanoseconds",
     "7 numbers for 8 points"},
    {"time falling along k", "500, 3000", "3500, 3000", 20, "gemm[0].nanoseconds[3]",
     "less than a smaller product"},
    {"time falling along m", "[300, 400", "[950, 960", 20, "gemm[0].nanoseconds[4]",
     "less than a smaller product"},
    {"faster than the peak", "20000, 200000", "20000, 100000", 20, "gemm[0].nanoseconds[7]",
     "faster than the device's peak"},
    {"negative time", "[300,", "[-300,", 20, "gemm[0].nanoseconds[0]", "-300 is out of range"},
    {"zero time", "[300,", "[0,", 20, "gemm[0].nanoseconds[0]", "0 is out of range"},
    {"not a number", "[300,", "[nan,", 20, "gemm[0].nanoseconds[0]", "nan is out of range"},
    {"axis that falls", "k: [128, 2048]", "k: [2048, 128]", 19, "gemm[0].k[1]", "128 follows 2048"},
    {"axis that repeats", "m: [32, 4096]", "m: [32, 32]", 17, "gemm[0].m[1]", "32 follows 32"},
    {"empty axis", "k: [128, 2048]", "", 15, "gemm[0].k", "is empty"},
    {"step not a divisor", "row_step_until: 1024", "row_step_until: 1000", 23,
     "gemm[0].row_step_until", "no multiple"},
    {"sustained below one", "[1, 1.1]", "[1, 0.9]", 25, "gemm[0].sustained_factor[1]",
     "0.9 is out of range"},
    {"longer bursts taking less", "[100000, 1000000]\n  sustained_factor: [1, 1.1]",
     "[100000, 110000]\n  sustained_factor: [2, 1.1]", 25, "gemm[0].sustained_factor[1]",
     "takes less time"},
    {"tiles without a whole sum", "  wgrad_rate: 0.95\n", kTilesWithoutOne, 27,
     "gemm[0].tiles.slices", "lacks 1"},
    {"tile of no rows", "  wgrad_rate: 0.95\n", kTileOfNoRows, 28, "gemm[0].tiles.tile[0].rows",
     "0 is out of range"},
    {"exponent above one", "  wgrad_rate: 0.95\n", kSteepTiles, 33, "gemm[0].tiles.exponent",
     "1.5 is out of range"},
    {"attention above the peak", "[400, 600]", "[400, 1600]", 36,
     "attention[0].curve[0].teraflops[1]", "1600 is out of range"},
    {"rate growing faster than work", "[1024, 8192]\n    teraflops: [400, 600]",
     "[1024, 1100]\n    teraflops: [400, 600]", 36, "attention[0].curve[0].teraflops[1]",
     "the rate grows"},
    {"measured beyond the curve", "measured_from: 4096", "measured_from: 512", 45,
     "attention[0].curve[1].measured_from", "no part of the curve"},
    {"lacking a pass", "pass: BACKWARD", "pass: FORWARD", 39, "attention[0].curve[1]",
     "has the pass, mask and head dimension"},
    {"fill above one", "fill_share: [0.6, 1]", "fill_share: [0.6, 1.2]", 49,
     "attention[0].fill_share[1]", "1.2 is out of range"},
    {"fill that falls", "fill_share: [0.6, 1]", "fill_share: [0.6, 0.5]", 49,
     "attention[0].fill_share[1]", "0.5 follows 0.6"},
    {"stream class twice", "class: FRAMEWORK", "class: FUSED", 59, "stream[1]",
     "has the class of another one"},
    {"more bytes taking less", "[500, 2800]", "[2, 2800]", 56, "stream[0].gigabytes_per_second[1]",
     "the rate grows"},
    {"negative rate", "[400, 1800]", "[400, -1800]", 62, "stream[1].gigabytes_per_second[1]",
     "out of range"},
    {"one rank", "ranks: 8", "ranks: 1", 83, "collective[0].ranks", "1 ranks exchange nothing"},
    {"collective time that falls", "[25, 325]", "[25, 20]", 85, "collective[0].microseconds[1]",
     "20 follows 25"},
    {"copies of no size", "bytes: [1000, 1000000]\n  gigabytes_per_second: [1, 390]", "", 88,
     "peer_copy.bytes", "is empty"},
    {"more bytes to a peer taking less", "[1, 390]", "[1, 3900]", 90,
     "peer_copy.gigabytes_per_second[1]", "the rate grows"},
    {"unknown field", "sms: 100", "smms: 100", 6, "smms", "unknown field"},
    {"unknown unit", "hbm_gigabytes_per_second", "hbm_gigabits_per_second", 5,
     "hbm_gigabits_per_second", "unknown field"},
    // The parser looks at a word after it has read the next one.
    {"unknown word", "dtype: BF16", "dtype: INT4", 17, "", "INT4"},
    {"missing field", "  sms: 100\n", "", 2, "device.sms", "is missing"},
    {"missing source", "  source { evidence: PUBLISHED text: \"nccl-tests\" }\n", "", 81,
     "collective[0].source", "is missing"},
    {"empty source", "text: \"nccl-tests\"", "text: \"\"", 86, "collective[0].source.text",
     "is empty"},
    {"name with spaces", "name: \"small\"", "name: \"Small one\"", 1, "name", "no catalogue name"},
    {"negative memory", "hbm_bytes: 80000000000", "hbm_bytes: -1", 4, "device.hbm_bytes",
     "not positive"},
};

TEST(ProfileFile, every_kind_of_mistake_is_reported_where_it_stands) {
  for (const Mistake& m : kMistakes) {
    const std::vector<Fault> faults = faults_of(with(small_profile_text(), m.from, m.to));
    ASSERT_FALSE(faults.empty()) << m.what;
    const auto found = std::find_if(faults.begin(), faults.end(),
                                    [&](const Fault& f) { return f.field == m.field; });
    ASSERT_NE(found, faults.end()) << m.what << ": " << faults[0].text();
    EXPECT_THAT(found->problem, HasSubstr(std::string(m.problem))) << m.what;
    EXPECT_EQ(found->line, m.line) << m.what << ": " << found->text();
    EXPECT_EQ(found->file, "p.textproto");
  }
}

TEST(ProfileFile, an_unknown_field_names_the_nearest_known_one) {
  const std::vector<Fault> faults =
      faults_of(with(small_profile_text(), "  sms: 100", "  sm: 100"));
  EXPECT_EQ(faults[0].nearest, "sms");
}

TEST(ProfileFile, all_mistakes_are_reported_at_once) {
  std::string text = with(small_profile_text(), "500, 3000", "3500, 3000");
  text = with(text, "[400, 600]", "[400, 1600]");
  text = with(text, "[25, 325]", "[25, 20]");
  text = with(text, "text: \"nccl-tests\"", "text: \"\"");
  EXPECT_GE(faults_of(text).size(), 4u);
  // Fields the parser does not know, too, beside what then is missing.
  std::string unknown = with(small_profile_text(), "sms: 100", "smms: 100");
  unknown = with(unknown, "ranks: 8", "gpus: 8");
  EXPECT_GE(faults_of(unknown).size(), 4u);
}

TEST(ProfileFile, a_fault_of_the_device_raises_no_others) {
  for (const std::string sms : {"0", "9223372036854775807"}) {
    const std::vector<Fault> faults =
        faults_of(with(small_profile_text(), "sms: 100", "sms: " + sms));
    ASSERT_EQ(faults.size(), 1U) << faults[1].text();
    EXPECT_EQ(faults[0].allowed, "1 to 1000000");
  }
}

TEST(ProfileFile, nothing_and_garbage_are_faults) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("# a comment"), std::string("garbage"),
        std::string("name: \"x\" {"), std::string(1000, '{'), std::string(3, '\0'),
        std::string("\xff\xfe\x01")}) {
    EXPECT_FALSE(faults_of(text).empty()) << text.substr(0, 20);
  }
}

// Whatever happens to a file, it loads as a profile that keeps the laws or it is refused; nothing
// crashes.
TEST(ProfileFile, mutilated_files_load_or_are_refused) {
  std::mt19937_64 random(99);
  const std::string original = small_profile_text();
  const std::string pieces = "0123456789.-[]{}:,\"\n eE_#nanBF";
  int loaded = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = original;
    for (size_t edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      const size_t at = random() % text.size();
      switch (random() % 5) {
        case 0:
          text[at] = pieces[random() % pieces.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 30);
          break;
        case 2:
          text.insert(at, 1, pieces[random() % pieces.size()]);
          break;
        case 3:
          text.insert(at, original.substr(random() % original.size(), random() % 60));
          break;
        default:
          text.resize(std::max<size_t>(1, at));
      }
    }
    try {
      const DeviceProfile profile = load_profile_text(text, "p");
      ++loaded;
      for (const int64_t m : {1, 100, 5000}) {
        ASSERT_GE(gemm_cost({m, 4096, 1024}, profile).time, profile.launch_floor) << text;
        ASSERT_TRUE(gemm_cost({m, 4096, 1024}, profile).time.is_finite()) << text;
      }
      ASSERT_TRUE(stream_cost({Bytes(1 << 26), StreamClass::kFused}, profile).time.is_finite())
          << text;
    } catch (const SpecError& error) {
      ++refused;
      ASSERT_FALSE(error.faults().empty());
    }
  }
  // Both happen often enough that neither branch is untested.
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace herdsim

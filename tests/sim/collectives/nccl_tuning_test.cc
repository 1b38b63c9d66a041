// What NCCL's own model chooses and predicts, release by release, and the curves that correct it.
#include "sim/collectives/nccl_tuning.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_model.h"
#include "tests/sim/collectives/group_shapes.h"

namespace herdsim {
namespace {

// What NCCL's source chooses, release by release.
TEST(NcclChoice, follows_the_release) {
  const auto algorithm = [](CollectiveKind kind, Bytes size, const GroupShape& group,
                            std::string_view version) {
    return plan_collective(kind, size, group, h100_tuning(version)).algorithm;
  };
  using enum CollectiveKind;
  for (const std::string& version : nccl_versions()) {
    EXPECT_EQ(algorithm(kAllReduce, gibibytes(1), shape(1, 8), version), Algorithm::kNvls)
        << version;
    EXPECT_EQ(algorithm(kAllGather, gibibytes(1), shape(1, 8), version), Algorithm::kRing)
        << version;
    EXPECT_EQ(algorithm(kAllReduce, kibibytes(8), shape(16, 8), version), Algorithm::kTree)
        << version;
    EXPECT_EQ(algorithm(kAllToAll, gibibytes(1), shape(4, 8), version), Algorithm::kPairwise);
  }
  // NVLSTree was booked at half the network's speed before 2.22, so that rings won large vectors.
  EXPECT_EQ(algorithm(kAllReduce, gibibytes(4), shape(4, 8), "2.20"), Algorithm::kRing);
  EXPECT_EQ(algorithm(kAllReduce, gibibytes(4), shape(4, 8), "2.22"), Algorithm::kNvlsTree);
  // PAT: from 2.23, for one rank a node, below about 200 MB at 128 ranks.
  EXPECT_EQ(algorithm(kAllGather, mebibytes(32), shape(128, 1), "2.22"), Algorithm::kRing);
  EXPECT_EQ(algorithm(kAllGather, mebibytes(32), shape(128, 1), "2.23"), Algorithm::kPat);
  EXPECT_EQ(algorithm(kAllGather, mebibytes(32), shape(16, 8), "2.23"), Algorithm::kRing);
  EXPECT_EQ(algorithm(kAllGather, mebibytes(804), shape(128, 1), "2.27"), Algorithm::kRing);
}

// Numbers worked out by hand from src/graph/tuning.cc for 2.27.
TEST(NcclPrediction, is_the_arithmetic_of_nccl) {
  const NcclTuning t = h100_tuning("2.27");
  const auto predict = [&](CollectiveKind kind, const GroupShape& g, Algorithm a, Protocol p) {
    return *nccl_prediction(kind, gibibytes(1), g, t, a, p);
  };
  using enum CollectiveKind;
  // 8.4 + (127 - 15) * 3.4 + 15 * 14
  EXPECT_NEAR(predict(kAllGather, shape(16, 8), Algorithm::kRing, Protocol::kSimple).latency_us,
              599.2, 0.01);
  // One rank a node: 8.4 + 127 * 14
  EXPECT_NEAR(predict(kAllGather, shape(128, 1), Algorithm::kRing, Protocol::kSimple).latency_us,
              1786.4, 0.01);
  // 25 + 2 * 4 * 20.9
  EXPECT_NEAR(predict(kAllReduce, shape(16, 8), Algorithm::kNvlsTree, Protocol::kSimple).latency_us,
              192.2, 0.01);
  // 6.8 + 2 (7 * 0.6 + 4 * 5)
  EXPECT_NEAR(predict(kAllReduce, shape(16, 8), Algorithm::kTree, Protocol::kLl).latency_us, 55.2,
              0.01);
  // 8 + 7 * 14 / 3.5 + 2.8 * 128
  EXPECT_NEAR(predict(kAllGather, shape(128, 1), Algorithm::kPat, Protocol::kSimple).latency_us,
              394.4, 0.01);
  // 24 channels of 15 GB/s are 360 on the bus; NVLS 476.
  EXPECT_NEAR(predict(kAllGather, shape(1, 8), Algorithm::kRing, Protocol::kSimple).bandwidth,
              360 * 8.0 / 7, 0.01);
  EXPECT_NEAR(predict(kAllReduce, shape(1, 8), Algorithm::kNvls, Protocol::kSimple).bandwidth,
              476 * 8.0 / 14, 0.01);
  EXPECT_FALSE(
      nccl_prediction(kAllGather, gibibytes(1), shape(1, 8), t, Algorithm::kTree, Protocol::kLl));
}

TEST(NcclTuning, an_unlisted_release_takes_the_row_before_it) {
  EXPECT_EQ(h100_tuning("2.20.5").version, "2.20");
  EXPECT_EQ(h100_tuning("2.21").version, "2.20");
  EXPECT_EQ(h100_tuning("2.26.2").version, "2.22");
  EXPECT_EQ(h100_tuning("2.99").version, "2.30");
  EXPECT_EQ(h100_tuning("nonsense").version, "2.19");
  for (const std::string& version : nccl_versions())
    EXPECT_EQ(h100_tuning(version).version, version);
}

TEST(NcclTuning, names_what_is_wrong_with_a_version) {
  for (const auto& [text, faults] :
       {std::pair("2.20", 0), std::pair("2.20.5", 0), std::pair("2.31", 0), std::pair("2.18", 1),
        std::pair("2", 1), std::pair("2.x", 1), std::pair("2.20.", 1), std::pair("3.1", 1),
        std::pair("", 1)}) {
    Faults list;
    append_nccl_version_faults(text, "cluster.nccl_version", list);
    EXPECT_EQ(static_cast<int>(list.list().size()), faults) << text;
  }
}

TEST(NcclTuning, every_correction_makes_time_grow_with_size) {
  const NcclTuning t = h100_tuning("2.20");
  std::vector<const CollectiveCorrection*> all = {
      &t.tree, &t.tree_two_nodes, &t.ring, &t.nic_ring, &t.pat, &t.all_to_all, &t.send_recv};
  for (const auto& kind : t.in_node) {
    for (const CollectiveCorrection& correction : kind) all.push_back(&correction);
  }
  for (const CollectiveCorrection* correction : all) {
    SCOPED_TRACE(correction->provenance.source);
    EXPECT_FALSE(correction->provenance.source.empty());
    double time = 0, fill = 0;
    for (const Bytes size : sizes()) {
      const double longer = static_cast<double>(size.count()) / correction->efficiency.at(size);
      ASSERT_GT(longer, time) << size.count();
      time = longer;
      ASSERT_GE(correction->fill_microseconds.at(size), fill) << size.count();
      fill = correction->fill_microseconds.at(size);
    }
  }
}

TEST(SizeCurve, passes_its_points_and_stays_constant_outside) {
  SizeCurve curve;
  for (size_t i = 0; i < SizeCurve::kPoints; ++i) curve.values[i] = 1.0 + static_cast<double>(i);
  EXPECT_DOUBLE_EQ(curve.at(bytes(0)), 1);
  EXPECT_DOUBLE_EQ(curve.at(bytes(512)), 1);
  EXPECT_DOUBLE_EQ(curve.at(mebibytes(1)), 11);
  EXPECT_DOUBLE_EQ(curve.at(gibibytes(64)), 25);
  EXPECT_NEAR(curve.at(bytes(1'482'910)), std::sqrt(11.0 * 12), 1e-6);
}

}  // namespace
}  // namespace herdsim

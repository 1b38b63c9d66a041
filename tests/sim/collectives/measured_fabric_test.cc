// Plans on a fabric of which something was measured or stated: times of a group, round trips, ring steps, small
// all-reduces.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_model.h"
#include "sim/collectives/nccl_tuning.h"
#include "tests/sim/collectives/group_shapes.h"

namespace herdsim {
namespace {

TEST(Collectives, take_the_time_that_was_measured_on_their_own_group_and_no_other) {
  NcclTuning own = h100_tuning("2.20");
  own.measured.push_back({.kind = CollectiveKind::kAllReduce,
                          .ranks = 8,
                          .nodes = 1,
                          .points = {{kibibytes(1), microseconds(90)},
                                     {mebibytes(1), microseconds(120)},
                                     {gibibytes(1), milliseconds(11)}}});
  const NcclTuning none = h100_tuning("2.20");
  const GroupShape host{.ranks = 8, .nodes = 1};
  const auto time = [&](CollectiveKind kind, Bytes size, const GroupShape& g, const NcclTuning& t) {
    return plan_collective(kind, size, g, t).alone().seconds();
  };
  for (const auto& point : own.measured[0].points) {
    EXPECT_NEAR(time(CollectiveKind::kAllReduce, point.size, host, own), point.time.seconds(), 1e-8);
  }
  EXPECT_NEAR(time(CollectiveKind::kAllReduce, mebibytes(1) / 2, host, own), 105e-6, 0.1e-6);
  // Beyond the border the prediction keeps the ratio it has there, and says so.
  const CollectivePlan beyond = plan_collective(CollectiveKind::kAllReduce, gibibytes(4), host, own);
  EXPECT_TRUE(beyond.extrapolated);
  EXPECT_NEAR(beyond.alone().seconds() / time(CollectiveKind::kAllReduce, gibibytes(4), host, none),
              11e-3 / time(CollectiveKind::kAllReduce, gibibytes(1), host, none), 1e-3);
  double before = 0;
  for (Bytes size = bytes(8); size < gibibytes(8); size = size * 2) {
    const double now = time(CollectiveKind::kAllReduce, size, host, own);
    EXPECT_GE(now, before) << size.count();
    before = now;
  }
  EXPECT_EQ(time(CollectiveKind::kAllGather, mebibytes(8), host, own),
            time(CollectiveKind::kAllGather, mebibytes(8), host, none));
  EXPECT_EQ(time(CollectiveKind::kAllReduce, mebibytes(8), {.ranks = 4, .nodes = 1}, own),
            time(CollectiveKind::kAllReduce, mebibytes(8), {.ranks = 4, .nodes = 1}, none));
}

// Two channels of eight 128 KiB buffers over 60 us: 35 GB/s, which is why Llama 3's stack retuned
// its chunks.
TEST(Collectives, carry_at_most_a_window_a_round_trip_on_every_channel) {
  NcclTuning tuning = h100_tuning("2.20");
  const GroupShape pair = shape(2, 1, HopClass::kCrossPod);
  const auto rate = [&](CollectiveKind kind, const GroupShape& group) {
    return plan_collective(kind, mebibytes(64), group, tuning).rate_cap.gigabytes_per_second();
  };
  const double free = rate(CollectiveKind::kSendRecv, pair);
  tuning.round_trip[static_cast<size_t>(HopClass::kCrossPod)] = 60;
  EXPECT_NEAR(rate(CollectiveKind::kSendRecv, pair), 34.95, 0.01);
  EXPECT_GT(free, 40);
  // Other distances have their own round trip.
  EXPECT_EQ(rate(CollectiveKind::kSendRecv, shape(2, 1, HopClass::kSamePod)), free);
  tuning.send_window = mebibytes(2);
  EXPECT_EQ(rate(CollectiveKind::kSendRecv, pair), free);
  // A ring of 4 channels on each NIC, 4 MiB each: bound once a round trip takes longer than 16 MiB
  // at 48 GB/s, 350 us.
  const GroupShape ring = shape(16, 1, HopClass::kCrossPod);
  const double free_ring = rate(CollectiveKind::kAllGather, ring);
  for (const double round_trip : {100.0, 340.0, 700.0, 1400.0}) {
    tuning.round_trip[static_cast<size_t>(HopClass::kCrossPod)] = round_trip;
    EXPECT_NEAR(rate(CollectiveKind::kAllGather, ring),
                std::min(free_ring, 4 * 4.194304e6 / round_trip * 1e-3), 1e-3)
        << round_trip;
  }
}

TEST(Collectives, say_where_they_were_not_measured) {
  const NcclTuning tuning = h100_tuning("2.20");
  const auto extrapolated = [&](CollectiveKind kind, Bytes size, const GroupShape& group) {
    return plan_collective(kind, size, group, tuning).extrapolated;
  };
  EXPECT_FALSE(extrapolated(CollectiveKind::kAllGather, mebibytes(64), shape(1, 8)));
  EXPECT_TRUE(extrapolated(CollectiveKind::kAllGather, mebibytes(64), shape(1, 72)));
  EXPECT_TRUE(extrapolated(CollectiveKind::kAllGather, gibibytes(64), shape(1, 8)));
  EXPECT_TRUE(extrapolated(CollectiveKind::kAllGather, mebibytes(64), shape(128, 1)));
  EXPECT_FALSE(extrapolated(CollectiveKind::kAllReduce, mebibytes(64), shape(1024, 8)));
}

// Of a fabric that was measured in a job.
TEST(MeasuredRingStep, is_the_longer_of_the_wire_and_the_way_of_the_first_slices) {
  constexpr double kHop = 38, kSlice = 24;
  double before = 0;
  for (const double wire : {0.1, 2.0, 8.0, 24.0, 62.0, 120.0, 1000.0}) {
    const double step = ring_step(wire, kHop, kSlice);
    const double longer = std::max(wire, kHop + std::min(wire, kSlice));
    EXPECT_GE(step, longer) << wire;
    EXPECT_LE(step, 1.26 * longer) << wire;  // the cube root of two, where both are alike
    EXPECT_GT(step, before) << wire;
    before = step;
    EXPECT_NEAR(ring_hop(step, wire, kSlice), kHop, 1e-6) << wire;
  }
}

// All-gathers of 1 GiB on one cloud, microseconds a step with what a copy of the result takes off: within a tenth.
TEST(MeasuredRingStep, is_that_of_published_jobs) {
  constexpr double kChunk = 1073.7e3, kRate = 275;  // 1 GiB in kB, and kB in a microsecond
  for (const auto& [ranks, measured] : {std::pair(32, 121.6), std::pair(64, 82.0), std::pair(128, 60.8),
                                        std::pair(256, 52.5), std::pair(512, 46.3)}) {
    EXPECT_NEAR(ring_step(kChunk / ranks / kRate, 38, 24) / measured, 1, 0.1) << ranks;
  }
}

// All latency: nothing but the ranks decides, up to 32 of them; larger messages and hosts alone are as they were.
TEST(SmallAllReduce, over_hosts_of_a_slow_fabric_takes_the_square_of_its_ranks) {
  NcclTuning tuning = h100_tuning("2.20");
  const auto time = [&](Bytes bytes, const GroupShape& group) {
    return plan_collective(CollectiveKind::kAllReduce, bytes, group, tuning).alone().seconds();
  };
  const double usual = time(kibibytes(16), shape(2, 8));
  const double large = time(mebibytes(64), shape(2, 8)), in_host = time(kibibytes(16), shape(1, 8));
  const double many = time(kibibytes(16), shape(8, 8));
  tuning.small_reduce_pair = 14;
  EXPECT_LT(usual, 1e-3);
  EXPECT_NEAR(time(kibibytes(16), shape(2, 8)), 14e-6 * 16 * 16, 0.2e-3);
  EXPECT_NEAR(time(kibibytes(64), shape(4, 8)), 14e-6 * 32 * 32, 0.2e-3);
  EXPECT_EQ(time(mebibytes(64), shape(2, 8)), large);
  EXPECT_EQ(time(kibibytes(16), shape(1, 8)), in_host);
  EXPECT_EQ(time(kibibytes(16), shape(8, 8)), many);
}

}  // namespace
}  // namespace herdsim

// Laws of collectives in phases, over every row of the table, kind, shape of group and size.
#include "sim/collectives/collective_phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_model.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/fabric/fabric_builder.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

constexpr std::array<CollectiveKind, 5> kPhasedKinds = {
    CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
    CollectiveKind::kAllToAll, CollectiveKind::kBroadcast};

GroupShape phase_group(int64_t nodes, int64_t ranks_per_node) {
  GroupShape group{.ranks = nodes * ranks_per_node, .nodes = nodes};
  if (nodes > 1) {
    group.farthest = HopClass::kSamePod;
    group.edges[static_cast<size_t>(HopClass::kSamePod)] = nodes;
  }
  return group;
}

std::vector<GroupShape> group_shapes() {
  std::vector<GroupShape> all;
  for (const int64_t nodes : {1, 2, 16, 128}) {
    for (const int64_t per_node : {1, 2, 4, 8}) {
      if (nodes * per_node > 1) all.push_back(phase_group(nodes, per_node));
    }
  }
  return all;
}

std::vector<Bytes> phase_sizes() {
  std::vector<Bytes> all;
  for (int64_t size = 7; size < gibibytes(16).count(); size *= 5) all.push_back(bytes(size));
  return all;
}

std::vector<CollectivePlan> phase_plans(CollectiveKind kind,
                                        const std::vector<CollectivePhase>& phases, Bytes size,
                                        const GroupShape& group, const NcclTuning& tuning) {
  std::vector<CollectivePlan> plans;
  for (const PlacedPhase& phase : placed_phases(kind, phases))
    plans.push_back(plan_phase(size, group, phase, tuning));
  return plans;
}

Duration time_of(const std::vector<CollectivePlan>& plans) {
  Duration sum;
  for (const CollectivePlan& plan : plans) {
    if (plan.volume > Bytes()) sum += plan.alone();
  }
  return sum;
}

// Calls check(row, kind, phases) for every kind that a row can do.
template <class Check>
void for_every_row(const Check& check) {
  for (const CollectiveAlgorithm& row : collective_algorithms()) {
    for (const CollectiveKind kind : kPhasedKinds) {
      const std::vector<CollectivePhase> phases = row.phases(kind);
      if (phases.empty()) continue;
      SCOPED_TRACE(std::string(row.name) + " " + std::string(collective_kind_name(kind)));
      check(row, kind, phases);
    }
  }
}

TEST(CollectivePhases, of_every_row_add_up_to_the_kind) {
  size_t rows_of_kinds = 0;
  for_every_row([&](const CollectiveAlgorithm& row, CollectiveKind kind,
                    const std::vector<CollectivePhase>& phases) {
    ++rows_of_kinds;
    EXPECT_EQ(phases_fault(kind, phases), "");
    EXPECT_EQ(find_collective_algorithm(row.name), &row);
    EXPECT_FALSE(row.help.empty());
  });
  EXPECT_GE(rows_of_kinds, collective_algorithms().size());
}

// NVLink at 450 GB/s a direction, a NIC at 50, and what the result needs of each: on p GPUs of n
// hosts a GPU of an all-reduce must get n - 1 parts in n of its part of the vector through its NIC,
// once reduced and once whole.
TEST(CollectivePhases, never_beat_the_bandwidth_of_the_machine) {
  const NcclTuning tuning = h100_tuning("2.23");
  for_every_row([&](const CollectiveAlgorithm&, CollectiveKind kind,
                    std::vector<CollectivePhase> phases) {
    for (CollectivePhase& phase : phases) phase.efficiency = 1;
    for (const GroupShape& group : group_shapes()) {
      for (const Bytes size : phase_sizes()) {
        const std::vector<CollectivePlan> plans = phase_plans(kind, phases, size, group, tuning);
        Bytes through_nic;
        for (const CollectivePlan& plan : plans) {
          ASSERT_LE(plan.rate_cap * plan.nic_crossings, gigabits_per_second(400));
          ASSERT_LE(plan.rate_cap * plan.nvlink_crossings, gigabytes_per_second(450));
          through_nic += plan.volume * plan.nic_crossings;
        }
        if (kind != CollectiveKind::kAllReduce || group.nodes == 1) continue;
        // Sums in a switch take each byte up once and down once.
        const bool in_switch = plans.size() == 1 && plans.front().algorithm == Algorithm::kCollNet;
        const int64_t least = (in_switch ? 1 : 2) * size.count() * (group.nodes - 1) / group.ranks;
        ASSERT_GE(through_nic.count(), least)
            << group.ranks << " ranks on " << group.nodes << ", " << size.count();
        ASSERT_GE(time_of(plans), Bytes(least) / gigabits_per_second(400));
      }
    }
  });
}

// Two ToRs of two hosts of four GPUs, in one pod.
Fabric small_cluster() {
  constexpr size_t kGpus = 16, kPerHost = 4;
  FabricBuilder builder(
      {.gpus = kGpus, .gpus_per_host = kPerHost, .nvlink = gigabytes_per_second(450)});
  std::vector<NodeId> nics, tors;
  for (size_t i = 0; i < kGpus; ++i) nics.push_back(builder.add(NodeKind::kNic));
  for (size_t i = 0; i < 2; ++i) tors.push_back(builder.add(NodeKind::kTor));
  const NodeId pod = builder.add(NodeKind::kPod);
  for (size_t i = 0; i < kGpus; ++i) {
    builder.connect(NodeId(i), nics[i], gigabytes_per_second(64));
    builder.connect(nics[i], tors[i / 8], gigabits_per_second(400));
  }
  for (const NodeId tor : tors) builder.connect(tor, pod, gigabits_per_second(400), 2);
  return std::move(builder).build();
}

TEST(CollectivePhases, hierarchical_moves_the_bytes_of_the_closed_form_over_each_link) {
  const Fabric fabric = small_cluster();
  std::vector<GpuId> members;
  for (size_t i = 0; i < fabric.gpus(); ++i) members.emplace_back(i);
  const GroupShape group = group_shape(fabric, members);
  const int64_t p = 4, n = 4, whole = mebibytes(960).count();
  std::map<LinkId, int64_t> carried;
  const auto phases = find_collective_algorithm("hierarchical")->phases(CollectiveKind::kAllReduce);
  // 2.19: no algorithm of the rails but a ring moves so much.
  std::vector<CollectivePhase> with_rings = phases;
  for (CollectivePhase& phase : with_rings) phase.algorithm = Algorithm::kRing;
  for (const CollectivePlan& plan : phase_plans(CollectiveKind::kAllReduce, with_rings,
                                                bytes(whole), group, h100_tuning("2.19"))) {
    std::vector<Crossing> path;
    append_group_path(fabric, members, plan, path);
    for (const Crossing& crossing : path)
      carried[crossing.link] += crossing.count * plan.volume.count();
  }
  for (const GpuId gpu : members) {
    const Node& nic = fabric.nodes()[fabric.nic_of(gpu)];
    const int64_t nvlink = 2 * (p - 1) * whole / p, port = 2 * (n - 1) * (whole / p) / n;
    EXPECT_EQ(carried[fabric.nvlink_out(gpu)], nvlink);
    EXPECT_EQ(carried[fabric.nvlink_in(gpu)], nvlink);
    EXPECT_EQ(carried[nic.up], port);
    EXPECT_EQ(carried[nic.down()], port);
  }
  // Each of the four rails passes from one ToR to the other once each way.
  for (const NodeId tor : {fabric.tor_of(GpuId(0)), fabric.tor_of(GpuId(8))}) {
    EXPECT_EQ(carried[fabric.nodes()[tor].up], p * 2 * (n - 1) * (whole / p) / n);
  }
}

TEST(CollectivePhases, an_all_to_all_over_rails_stays_on_its_rail) {
  // Both hosts of a ToR on the same rails: of three partners of a GPU on its rail two are beyond
  // its ToR.
  const Fabric fabric = small_cluster();
  std::vector<GpuId> members;
  for (size_t i = 0; i < fabric.gpus(); ++i) members.emplace_back(i);
  const auto plans =
      phase_plans(CollectiveKind::kAllToAll,
                  find_collective_algorithm("hierarchical")->phases(CollectiveKind::kAllToAll),
                  mebibytes(96), group_shape(fabric, members), h100_tuning("2.20"));
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].volume, mebibytes(72));  // three partners of four
  std::vector<Crossing> path;
  append_group_path(fabric, members, plans[1], path);
  int64_t up = 0;
  for (const Crossing& crossing : path) {
    if (crossing.link == fabric.nodes()[fabric.tor_of(GpuId(0))].up) up = crossing.count;
  }
  // 8 GPUs with 2 of 3 partners beyond: 16 / 3 of a NIC's volume; a share of a crossing of each
  // rail counts as a whole.
  EXPECT_GE(up, 6);
  EXPECT_LE(up, 8);
}

TEST(CollectivePhases, in_one_host_or_on_one_rail_are_what_is_left_of_them) {
  const NcclTuning tuning = h100_tuning("2.20");
  const auto phases = find_collective_algorithm("hierarchical")->phases(CollectiveKind::kAllReduce);
  const GroupShape on_rail = phase_group(16, 1), in_host = phase_group(1, 8);
  const Bytes size = mebibytes(64);
  EXPECT_EQ(time_of(phase_plans(CollectiveKind::kAllReduce, phases, size, on_rail, tuning)),
            plan_collective(CollectiveKind::kAllReduce, size, on_rail, tuning).alone());
  EXPECT_EQ(time_of(phase_plans(CollectiveKind::kAllReduce, phases, size, in_host, tuning)),
            plan_collective(CollectiveKind::kReduceScatter, size, in_host, tuning).alone() +
                plan_collective(CollectiveKind::kAllGather, size, in_host, tuning).alone());
}

// Small vectors gain what the flat ring's many steps cost.
TEST(CollectivePhases, hierarchical_is_faster_than_a_flat_ring_where_steps_decide) {
  const NcclTuning tuning = h100_tuning("2.20");
  const auto time = [&](std::string_view algorithm, Bytes size) {
    const auto phases = find_collective_algorithm(algorithm)->phases(CollectiveKind::kAllReduce);
    return time_of(
        phase_plans(CollectiveKind::kAllReduce, phases, size, phase_group(128, 8), tuning));
  };
  EXPECT_LT(time("hierarchical", mebibytes(1)), time("ring", mebibytes(1)));
}

TEST(CollectivePhases, asked_for_what_nccl_chooses_change_nothing) {
  size_t compared = 0;
  for (const std::string& version : nccl_versions()) {
    const NcclTuning tuning = h100_tuning(version);
    for (const GroupShape& group : group_shapes()) {
      for (const Bytes size : phase_sizes()) {
        for (const CollectiveKind kind : kPhasedKinds) {
          const CollectivePlan free = plan_collective(kind, size, group, tuning);
          // The corrections of a tree beside NVLS are those of the two of them, and of an
          // all-reduce in a host those of all that could be chosen.
          const bool nvls = group.ranks_per_node() > 2;
          if (free.algorithm == Algorithm::kTree && (nvls || group.nodes == 1)) continue;
          const bool in_host = kind == CollectiveKind::kAllReduce && group.nodes == 1;
          if (free.algorithm == Algorithm::kRing && in_host) continue;
          const CollectivePlan asked = plan_collective(kind, size, group, tuning, free.algorithm);
          ASSERT_EQ(asked.algorithm, free.algorithm);
          ASSERT_EQ(asked.alone(), free.alone())
              << algorithm_name(free.algorithm) << " of " << group.ranks << " on " << group.nodes
              << ", " << size.count();
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 1000u);
}

TEST(CollectivePhases,
     asked_algorithms_run_where_nccl_could_choose_them_and_take_longer_for_more_bytes) {
  NcclTuning tuning = h100_tuning("2.23");
  tuning.has_in_network = true;
  for (const Algorithm asked :
       {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvls, Algorithm::kNvlsTree, Algorithm::kPat,
        Algorithm::kCollNet, Algorithm::kPairwise}) {
    for (const GroupShape& group : group_shapes()) {
      for (const CollectiveKind kind : kPhasedKinds) {
        Duration before;
        for (const Bytes size : phase_sizes()) {
          const CollectivePlan plan = plan_collective(kind, size, group, tuning, asked);
          ASSERT_EQ(plan.algorithm == asked || !applies_to(kind, group, tuning, asked), true);
          if (!applies_to(kind, group, tuning, asked)) {
            ASSERT_EQ(plan.alone(), plan_collective(kind, size, group, tuning).alone());
            continue;
          }
          ASSERT_GE(plan.alone(), before)
              << algorithm_name(asked) << " " << collective_kind_name(kind) << " of " << group.ranks
              << " on " << group.nodes << ", " << size.count();
          before = plan.alone();
        }
      }
    }
  }
}

TEST(CollectivePhases, take_the_channels_and_the_efficiency_they_are_given) {
  const NcclTuning tuning = h100_tuning("2.20");
  const GroupShape group = phase_group(16, 8);
  const auto plan = [&](CollectivePhase phase) {
    return plan_phase(mebibytes(512), group, PlacedPhase{.phase = phase}, tuning);
  };
  const CollectivePhase rail{.kind = CollectiveKind::kAllReduce, .part = GroupPart::kRail};
  CollectivePhase half = rail, reaching = rail, more = rail;
  half.channels = plan(rail).channels / 2;
  more.channels = plan(rail).channels * 4;
  reaching.efficiency = 0.8;
  EXPECT_EQ(plan(half).channels, plan(rail).channels / 2);
  EXPECT_EQ(plan(half).rate_cap, plan(rail).rate_cap / 2);
  EXPECT_EQ(plan(more).rate_cap, plan(rail).rate_cap);
  EXPECT_EQ(plan(reaching).rate_cap, gigabits_per_second(400) * Ratio(0.8));
  EXPECT_EQ(plan(reaching).latency, plan(rail).latency);
  EXPECT_EQ(plan(reaching).volume, plan(rail).volume);
}

TEST(CollectivePhases, that_are_not_the_kind_are_told_why) {
  using Kind = CollectiveKind;
  using Part = GroupPart;
  const auto fault = [](Kind kind, const std::vector<CollectivePhase>& phases) {
    return phases_fault(kind, phases);
  };
  EXPECT_THAT(fault(Kind::kAllReduce, {}), HasSubstr("nothing is done in each host"));
  EXPECT_THAT(fault(Kind::kAllReduce, {{.kind = Kind::kAllReduce, .part = Part::kNode}}),
              HasSubstr("nothing is done along rails"));
  EXPECT_THAT(fault(Kind::kAllReduce, {{.kind = Kind::kReduceScatter, .part = Part::kNode},
                                       {.kind = Kind::kAllReduce, .part = Part::kRail}}),
              HasSubstr("what is scattered in each host is never gathered"));
  EXPECT_THAT(fault(Kind::kAllReduce,
                    {{.kind = Kind::kAllReduce}, {.kind = Kind::kAllReduce, .part = Part::kRail}}),
              HasSubstr("an all-reduce along rails adds up what is added up"));
  EXPECT_THAT(fault(Kind::kAllReduce, {{.kind = Kind::kAllGather, .part = Part::kNode}}),
              HasSubstr("an all-gather in each host finds nothing that is scattered"));
  EXPECT_THAT(fault(Kind::kReduceScatter, {{.kind = Kind::kReduceScatter, .part = Part::kNode},
                                           {.kind = Kind::kAllReduce, .part = Part::kRail}}),
              HasSubstr("nothing is scattered along rails"));
  EXPECT_THAT(fault(Kind::kAllGather, {{.kind = Kind::kAllGather, .part = Part::kRail}}),
              HasSubstr("what is scattered in each host is never gathered"));
  EXPECT_THAT(fault(Kind::kAllToAll,
                    {{.kind = Kind::kAllToAll}, {.kind = Kind::kAllToAll, .part = Part::kNode}}),
              HasSubstr("an all-to-all in each host comes twice"));
  EXPECT_THAT(fault(Kind::kAllToAll, {{.kind = Kind::kAllReduce}}), HasSubstr("is no part of it"));
  EXPECT_THAT(fault(Kind::kBroadcast, {{.kind = Kind::kSendRecv}}), HasSubstr("two ranks alone"));
}

}  // namespace
}  // namespace herdsim

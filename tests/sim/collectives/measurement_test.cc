// Validation against published measurements: what was measured, what is planned, within which
// tolerance. Each test prints its errors, so that a change of a table shows what it moved.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

using enum CollectiveKind;

GroupShape group_of(int64_t ranks, int64_t nodes) {
  GroupShape group{.ranks = ranks, .nodes = nodes};
  if (nodes > 1) {
    group.farthest = HopClass::kSamePod;
    group.edges[static_cast<size_t>(HopClass::kSamePod)] = nodes;
  }
  return group;
}

double bus_factor(CollectiveKind kind, int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return kind == kAllReduce ? 2 * share : kind == kSendRecv || kind == kBroadcast ? 1 : share;
}

struct Measurement {
  CollectiveKind kind;
  int64_t ranks, nodes;
  Bytes bytes;
  double microseconds;
};

Measurement from_bus_bandwidth(CollectiveKind kind, int64_t ranks, int64_t nodes, Bytes bytes,
                               double gigabytes_per_second) {
  const double us =
      static_cast<double>(bytes.count()) * bus_factor(kind, ranks) / (gigabytes_per_second * 1e3);
  return {kind, ranks, nodes, bytes, us};
}

std::string size_text(Bytes bytes) {
  const int64_t n = bytes.count();
  return n >= 1 << 30   ? fmt::format("{}G", n >> 30)
         : n >= 1 << 20 ? fmt::format("{}M", n >> 20)
         : n >= 1 << 10 ? fmt::format("{}K", n >> 10)
                        : fmt::format("{}", n);
}

// Plans every measurement, prints a line of errors in percent for each group, and expects each to
// be within tolerance.
void expect_within(std::string_view source, std::string_view nccl,
                   const std::vector<Measurement>& measurements, double tolerance) {
  const NcclTuning tuning = h100_tuning(nccl);
  std::map<std::tuple<CollectiveKind, int64_t, int64_t>, std::string> lines;
  double sum = 0, worst = 0;
  for (const Measurement& m : measurements) {
    const double planned =
        plan_collective(m.kind, m.bytes, group_of(m.ranks, m.nodes), tuning).alone().seconds() *
        1e6;
    const double error = planned / m.microseconds - 1;
    EXPECT_LE(std::abs(error), tolerance)
        << source << ": " << collective_kind_name(m.kind) << " of " << m.ranks << " ranks on "
        << m.nodes << " nodes, " << size_text(m.bytes) << ": measured " << m.microseconds
        << " us, planned " << planned;
    lines[{m.kind, m.ranks, m.nodes}] +=
        fmt::format(" {}:{:+.0f}", size_text(m.bytes), 100 * error);
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
  }
  std::cout << fmt::format("{}: mean {:.1f} %, worst {:.1f} %, allowed {:.0f} %\n", source,
                           100 * sum / static_cast<double>(measurements.size()), 100 * worst,
                           100 * tolerance);
  for (const auto& [key, line] : lines) {
    std::cout << fmt::format("  {} {} x {}:{}\n", collective_kind_name(std::get<0>(key)),
                             std::get<2>(key), std::get<1>(key) / std::get<2>(key), line);
  }
}

// NVIDIA/nccl-tests issue 290, one 8-GPU H100 host.
TEST(CollectiveValidation, all_reduce_on_one_host_is_within_5_percent) {
  expect_within("nccl-tests #290", "2.20",
                {from_bus_bandwidth(kAllReduce, 8, 1, mebibytes(128), 383),
                 from_bus_bandwidth(kAllReduce, 8, 1, mebibytes(256), 412),
                 from_bus_bandwidth(kAllReduce, 8, 1, mebibytes(512), 432),
                 from_bus_bandwidth(kAllReduce, 8, 1, gibibytes(1), 465),
                 from_bus_bandwidth(kAllReduce, 8, 1, gibibytes(4), 474)},
                0.05);
}

// NCCL maintainers and SimAI's constants: rings over NVSwitch reach 360 to 370 GB/s.
TEST(CollectiveValidation, large_rings_on_one_host_reach_the_published_bandwidth) {
  expect_within("NVIDIA, in a host", "2.20",
                {from_bus_bandwidth(kAllGather, 8, 1, gibibytes(8), 365),
                 from_bus_bandwidth(kReduceScatter, 8, 1, gibibytes(8), 365)},
                0.05);
}

// NVIDIA's NVLSTree figure (GTC 2024), bus bandwidth in GB/s read to +-3.
TEST(CollectiveValidation, nvlstree_from_32_to_8192_gpus_is_within_15_percent_from_64_mib) {
  const std::vector<std::pair<int64_t, std::vector<double>>> figure = {
      {32, {230, 314, 352, 365}},        {64, {191, 309, 348, 372, 379}},
      {128, {177, 297, 350, 372, 380}},  {256, {167, 276, 344, 367, 377}},
      {512, {150, 265, 340, 359, 375}},  {1024, {123, 255, 331, 359, 370}},
      {2048, {125, 233, 311, 354, 369}}, {4096, {109, 225, 296, 345, 374}},
      {8192, {108, 217, 307, 348, 367}}};
  std::vector<Measurement> measurements;
  for (const auto& [ranks, bandwidths] : figure) {
    Bytes size = mebibytes(64);
    for (const double bandwidth : bandwidths) {
      measurements.push_back(from_bus_bandwidth(kAllReduce, ranks, ranks / 8, size, bandwidth));
      size = size * 4;
    }
  }
  expect_within("NVLSTree figure", "2.22", measurements, 0.15);
}

// The same figure and a second cluster's, fitted by time = alpha + bytes / bandwidth over 16 to 256 MiB: alpha grows by 85
// to 95 us with every doubling of the nodes, from 4 nodes to 1,024.
TEST(CollectiveValidation, latency_grows_with_every_doubling_of_nodes_as_published_within_20_percent) {
  const NcclTuning tuning = h100_tuning("2.22");
  const auto alpha = [&](int64_t nodes) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const int64_t size : {16, 64, 256}) {
      const double bytes = static_cast<double>(mebibytes(size).count());
      const double us =
          plan_collective(kAllReduce, mebibytes(size), group_of(8 * nodes, nodes), tuning)
              .alone()
              .seconds() *
          1e6;
      n += 1, x += bytes, y += us, xx += bytes * bytes, xy += bytes * us;
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    return (y - slope * x) / n;
  };
  const double growth = (alpha(1024) - alpha(4)) / 8;
  std::cout << fmt::format("latency of all-reduce grows {:.0f} us a doubling, published 85 to 95\n",
                           growth);
  EXPECT_NEAR(growth, 90, 0.2 * 90);
}

// 2 x 8 H200 with 400 Gb/s RoCE, NCCL 2.30.4; Nebius 2 x 8 with InfiniBand, 2.20.5 (1 GB at 435).
TEST(CollectiveValidation, all_reduce_on_two_hosts_is_within_10_percent) {
  expect_within("2 x 8 RoCE", "2.30",
                {from_bus_bandwidth(kAllReduce, 16, 2, mebibytes(128), 339),
                 from_bus_bandwidth(kAllReduce, 16, 2, mebibytes(512), 433),
                 from_bus_bandwidth(kAllReduce, 16, 2, gibibytes(1), 459),
                 from_bus_bandwidth(kAllReduce, 16, 2, gibibytes(8), 486)},
                0.10);
  expect_within("Nebius 2 x 8", "2.20.5",
                {from_bus_bandwidth(kAllReduce, 16, 2, megabytes(1000), 435)}, 0.10);
}

// Voltage Park, 4 x 8 H100: large all-reduce and all-gather.
TEST(CollectiveValidation, four_hosts_are_within_10_percent) {
  expect_within("Voltage Park 4 x 8", "2.20",
                {from_bus_bandwidth(kAllReduce, 32, 4, gibibytes(8), 331),
                 from_bus_bandwidth(kAllGather, 32, 4, gibibytes(8), 324)},
                0.10);
}

// aliyun/SimAI's nic_ratio table: fraction of 360 GB/s that an all-gather reaches. Its origin is
// not stated.
TEST(CollectiveValidation, rings_on_8_to_128_hosts_follow_simais_table) {
  const std::vector<std::pair<Bytes, std::vector<double>>> table = {
      {mebibytes(16), {.13, .044, .009}},
      {mebibytes(256), {.69, .39, .10}},
      {gibibytes(1), {.90, .74, .31}},
      {gibibytes(4), {.95, .92, .74}},
      {gibibytes(16), {.96, .96, .92}}};
  const std::vector<int64_t> nodes = {8, 32, 128};
  std::vector<Measurement> large, small;
  for (const auto& [size, fractions] : table) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      (size >= gibibytes(1) ? large : small)
          .push_back(
              from_bus_bandwidth(kAllGather, 8 * nodes[i], nodes[i], size, 360 * fractions[i]));
    }
  }
  expect_within("SimAI, from 1 GiB", "2.20", large, 0.15);
  expect_within("SimAI, below", "2.20", small, 0.35);
}

// NVIDIA/nccl issue 1229: reduce-scatter decays from 360 GB/s on 4 hosts to 260 on 128; the size is
// not stated, 8 GiB assumed.
TEST(CollectiveValidation, reduce_scatter_decays_with_hosts_as_published) {
  std::vector<Measurement> measurements;
  const std::vector<double> bandwidths = {360, 345, 320, 300, 280, 260};
  for (size_t i = 0; i < bandwidths.size(); ++i) {
    const int64_t nodes = int64_t{4} << i;
    measurements.push_back(
        from_bus_bandwidth(kReduceScatter, 8 * nodes, nodes, gibibytes(8), bandwidths[i]));
  }
  expect_within("nccl #1229", "2.20", measurements, 0.15);
}

// A data-parallel ring of one rank a node: 804 MB in 16.4 ms of wire and 1.8 ms of steps; half
// efficient at 86 MB.
TEST(CollectiveValidation, a_ring_of_128_ranks_on_as_many_nodes_gathers_a_layer_in_18_ms) {
  const auto size = megabytes(804);
  const CollectivePlan plan =
      plan_collective(kAllGather, size, group_of(128, 128), h100_tuning("2.20"));
  EXPECT_EQ(plan.algorithm, Algorithm::kRing);
  EXPECT_NEAR(plan.alone().seconds() * 1e3, 18.2, 0.36);
  EXPECT_NEAR(plan.latency.seconds() * 1e3, 1.79, 0.05);
  // Simple would be half efficient at 86 MB; NCCL takes LL128 there, whose steps are shorter.
  const CollectivePlan half =
      plan_collective(kAllGather, megabytes(86), group_of(128, 128), h100_tuning("2.20"));
  EXPECT_NEAR(86e6 * 127 / 128 / half.alone().seconds() / 48e9, 0.55, 0.05);
}

// The recorded runs below are not part of a clone.
std::string data_file(const std::string& name) {
  return std::string(HERDSIM_SOURCE_DIR) + "/../shared/data/" + name;
}

CollectiveKind kind_named(const std::string& name) {
  return name.starts_with("all_gather")       ? kAllGather
         : name.starts_with("reduce_scatter") ? kReduceScatter
         : name.starts_with("alltoall")       ? kAllToAll
         : name.starts_with("sendrecv")       ? kSendRecv
                                              : kAllReduce;
}

// Out-of-place times of an nccl-tests log, from a size on.
std::vector<Measurement> read_nccl_tests_log(const std::string& path, int64_t ranks, int64_t nodes,
                                             Bytes least) {
  std::ifstream file(path);
  std::vector<Measurement> measurements;
  CollectiveKind kind = kAllReduce;
  for (std::string line; std::getline(file, line);) {
    const std::string starting = "Collective test starting: ";
    if (const size_t at = line.find(starting); at != std::string::npos) {
      kind = kind_named(line.substr(at + starting.size()));
    }
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    int64_t size = 0, count = 0;
    std::string type, op, root;
    double us = 0;
    if (!(fields >> size >> count >> type >> op >> root >> us)) continue;
    if (bytes(size) >= least) measurements.push_back({kind, ranks, nodes, bytes(size), us});
  }
  return measurements;
}

std::vector<Measurement> only(std::vector<Measurement> all,
                              std::initializer_list<CollectiveKind> kinds) {
  std::erase_if(all, [&](const Measurement& m) {
    return std::find(kinds.begin(), kinds.end(), m.kind) == kinds.end();
  });
  return all;
}

TEST(RecordedRuns, collectives_on_one_host_are_within_5_percent_from_1_mib) {
  std::ifstream file(data_file("aiconfigurator/nccl_h100_2.29.2.csv"));
  if (!file) GTEST_SKIP() << "recorded runs are not here";
  // Two element types were timed: rings do not care (their mean counts), NVLS reduces only halves
  // in the switch.
  std::map<std::tuple<CollectiveKind, int64_t, int64_t>, std::vector<double>> times;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string op, type, gpus, size, us;
    for (std::string* field : {&op, &type, &gpus, &size, &us}) std::getline(fields, *field, ',');
    const CollectiveKind kind = kind_named(op);
    if (std::stoll(size) < 1 << 20 || (kind == kAllReduce && type != "half")) continue;
    times[{kind, std::stoll(gpus), std::stoll(size)}].push_back(std::stod(us));
  }
  std::vector<Measurement> rings, others;
  for (const auto& [key, of_types] : times) {
    const auto& [kind, gpus, size] = key;
    double log_sum = 0;
    for (const double us : of_types) log_sum += std::log(us);
    const bool ring = kind == kAllGather || kind == kReduceScatter;
    (ring ? rings : others)
        .push_back(
            {kind, gpus, 1, bytes(size), std::exp(log_sum / static_cast<double>(of_types.size()))});
  }
  ASSERT_EQ(rings.size(), 60U);
  expect_within("aiconfigurator H100, rings", "2.29.2", rings, 0.05);
  expect_within("aiconfigurator H100, all-reduce and all-to-all", "2.29.2", others, 0.075);
}

TEST(RecordedRuns, a_second_clusters_hosts_are_within_8_percent) {
  for (const int64_t gpus : {4, 8}) {
    const auto runs = only(
        read_nccl_tests_log(data_file(fmt::format("nccl_logs/h100_cluster01_N1_G{}_002.log", gpus)),
                            gpus, 1, mebibytes(32)),
        {kAllReduce, kAllGather, kReduceScatter, kAllToAll});
    if (runs.empty()) GTEST_SKIP() << "recorded runs are not here";
    expect_within(fmt::format("cluster01 1 x {}", gpus), "2.29.2", runs, 0.08);
  }
}

TEST(RecordedRuns, two_and_four_hosts_are_within_10_percent_from_64_mib) {
  for (const int64_t nodes : {2, 4}) {
    const auto runs = read_nccl_tests_log(
        data_file(fmt::format("nccl_logs/h100_issue309_dell_N{}_allreduce.log", nodes)), 8 * nodes,
        nodes, mebibytes(64));
    if (runs.empty()) GTEST_SKIP() << "recorded runs are not here";
    expect_within(fmt::format("Dell {} x 8", nodes), "2.26.2", runs, 0.10);
  }
}

// Rings that NICs limit. With 4 GPUs a node 32 MiB is 21 % too fast: NCCL's prediction misses what
// its chunks cost.
TEST(RecordedRuns, ten_hosts_of_1_to_4_gpus_are_within_13_percent_from_64_mib) {
  for (const int64_t gpus : {1, 2, 4}) {
    const auto runs = only(
        read_nccl_tests_log(data_file(fmt::format("nccl_logs/h100_cluster01_N10_G{}.log", gpus)),
                            10 * gpus, 10, bytes(60'000'000)),
        {kAllReduce, kAllGather, kReduceScatter, kAllToAll});
    if (runs.empty()) GTEST_SKIP() << "recorded runs are not here";
    expect_within(fmt::format("cluster01 10 x {}", gpus), "2.29.2", runs, 0.13);
  }
}

// This cluster is up to 1.5 times slower than NVIDIA's figure and than SimAI's table between 32 and
// 512 MiB; the model stands between. From 1 GiB they agree.
TEST(RecordedRuns, ten_hosts_of_8_gpus_are_within_16_percent_from_1_gib) {
  const auto runs = only(read_nccl_tests_log(data_file("nccl_logs/h100_cluster01_N10_G8.log"), 80,
                                             10, bytes(1'000'000'000)),
                         {kAllReduce, kAllGather, kReduceScatter, kAllToAll});
  if (runs.empty()) GTEST_SKIP() << "recorded runs are not here";
  expect_within("cluster01 10 x 8", "2.29.2", runs, 0.16);
}

}  // namespace
}  // namespace herdsim

#include "sim/collectives/nccl_measurements.h"

#include <string_view>

namespace herdsim {
namespace {

using Points = std::array<double, SizeCurve::kPoints>;

// One 8-GPU H100 host. Efficiency is against 360 GB/s on a ring and 476 GB/s NVLS; times are
// isotonic means (a longer message is never faster) of ai-dynamo/aiconfigurator's grid
// (NCCL 2.29.2, 512 B to 512 MiB, half), nccl-tests of an HGX cluster
// (xxrjun/nccl-tests-cluster, 2.29.2, 32 MiB to 16 GiB) and NVIDIA/nccl-tests issue 290 (8 GPUs).
struct NodeRow {
  CollectiveKind kind;
  int64_t ranks;
  double latency_factor;
  Bytes least, most;
  Points efficiency;
};

constexpr std::string_view kNodeSource =
    "aiconfigurator nccl h100 2.29.2; xxrjun/nccl-tests-cluster N1; nccl-tests issue 290";

constexpr NodeRow kNodeRows[] = {
    {CollectiveKind::kAllReduce,
     2,
     0.709,
     Bytes(512),
     Bytes(536870912),
     {0.00589, 0.0072, 0.0122, 0.0184, 0.0277, 0.0545, 0.103, 0.168, 0.222,
      0.28,    0.316,  0.261,  0.423,  0.558,  0.608,  0.675, 0.749, 0.809,
      0.851,   0.887,  0.887,  0.887,  0.887,  0.887,  0.887}},
    {CollectiveKind::kAllReduce,
     4,
     0.846,
     Bytes(512),
     Bytes(17179869184),
     {0.00565, 0.00958, 0.015, 0.0242, 0.0233, 0.0458, 0.0903, 0.178, 0.349,
      0.37,    0.46,    0.459, 0.521,  0.646,  0.773,  0.845,  0.878, 0.924,
      0.955,   0.975,   0.989, 1,      1.01,   1.02,   1.02}},
    {CollectiveKind::kAllReduce,
     8,
     0.956,
     Bytes(512),
     Bytes(17179869184),
     {0.00299, 0.00562, 0.00913, 0.018, 0.0138, 0.0272, 0.0537, 0.103, 0.2,
      0.333,   0.349,   0.323,   0.427, 0.478,  0.573,  0.698,  0.81,  0.864,
      0.906,   0.931,   0.986,   1,     1,      1.01,   1.01}},
    {CollectiveKind::kAllGather,
     2,
     0.684,
     Bytes(512),
     Bytes(536870912),
     {0.00312, 0.00615, 0.0121, 0.0125, 0.017, 0.0334, 0.0641, 0.108, 0.145,
      0.214,   0.226,   0.252,  0.265,  0.367, 0.456,  0.531,  0.604, 0.649,
      0.687,   0.721,   0.721,  0.721,  0.721, 0.721,  0.721}},
    {CollectiveKind::kAllGather,
     4,
     0.775,
     Bytes(512),
     Bytes(17179869184),
     {0.00376, 0.00614, 0.0107, 0.0158, 0.0169, 0.0297, 0.0577, 0.105, 0.208,
      0.257,   0.307,   0.348,  0.286,  0.45,   0.588,  0.685,  0.753, 0.82,
      0.858,   0.889,   0.918,  0.939,  0.957,  0.98,   0.984}},
    {CollectiveKind::kAllGather,
     8,
     0.875,
     Bytes(512),
     Bytes(17179869184),
     {0.00262, 0.00438, 0.00863, 0.017, 0.023, 0.0227, 0.0436, 0.0789, 0.155,
      0.254,   0.332,   0.401,   0.425, 0.586, 0.691,  0.715,  0.829,  0.863,
      0.913,   0.944,   0.966,   0.981, 0.995, 1,      1.01}},
    {CollectiveKind::kReduceScatter,
     2,
     0.680,
     Bytes(512),
     Bytes(536870912),
     {0.00336, 0.00662, 0.013, 0.0108, 0.0203, 0.0323, 0.0635, 0.107, 0.142,
      0.211,   0.244,   0.267, 0.297,  0.409,  0.469,  0.498,  0.551, 0.59,
      0.624,   0.672,   0.672, 0.672,  0.672,  0.672,  0.672}},
    {CollectiveKind::kReduceScatter,
     4,
     0.783,
     Bytes(512),
     Bytes(17179869184),
     {0.00372, 0.00732, 0.0121, 0.0181, 0.0243, 0.047, 0.0816, 0.139, 0.19,
      0.305,   0.409,   0.383,  0.312,  0.519,  0.639, 0.7,    0.739, 0.795,
      0.828,   0.856,   0.893,  0.924,  0.949,  0.969, 0.986}},
    {CollectiveKind::kReduceScatter,
     8,
     0.872,
     Bytes(512),
     Bytes(17179869184),
     {0.00266, 0.00523, 0.00891, 0.0176, 0.025, 0.037, 0.0676, 0.123, 0.224,
      0.425,   0.473,   0.577,   0.49,   0.605, 0.684, 0.777,  0.851, 0.869,
      0.911,   0.934,   0.956,   0.972,  0.991, 1,     1.01}},
    {CollectiveKind::kAllToAll,
     2,
     0.813,
     Bytes(512),
     Bytes(536870912),
     {0.00233, 0.00459, 0.00805, 0.00935, 0.0115, 0.0137, 0.0153, 0.0229, 0.0434,
      0.085,   0.162,   0.296,   0.38,    0.453,  0.496,  0.619,  0.696,  0.727,
      0.761,   0.782,   0.782,   0.782,   0.782,  0.782,  0.782}},
    {CollectiveKind::kAllToAll,
     4,
     0.841,
     Bytes(512),
     Bytes(17179869184),
     {0.00102, 0.00201, 0.00396, 0.00781, 0.0154, 0.0276, 0.0391, 0.0425, 0.0651,
      0.124,   0.23,    0.387,   0.475,   0.526,  0.555,  0.672,  0.764,  0.81,
      0.847,   0.855,   0.943,   0.974,   0.982,  0.985,  0.987}},
    {CollectiveKind::kAllToAll,
     8,
     0.937,
     Bytes(512),
     Bytes(17179869184),
     {0.00278, 0.00276, 0.00544, 0.0107, 0.00922, 0.0182, 0.0358, 0.0706, 0.103,
      0.158,   0.283,   0.428,   0.527,  0.59,    0.6,    0.692,  0.775,  0.829,
      0.862,   0.876,   0.926,   0.953,  0.955,   0.961,  0.966}},
    {CollectiveKind::kSendRecv,
     2,
     0.716,
     Bytes(32768),
     Bytes(17179869184),
     {0.00639, 0.0126, 0.0248, 0.0489, 0.0964, 0.19,  0.247, 0.348, 0.443,
      0.471,   0.601,  0.675,  0.842,  0.848,  0.917, 0.943, 0.992, 1,
      1.01,    0.994,  1,      1.01,   1.02,   1.02,  1.02}},
};

// Trees across more than two nodes: NVIDIA's NVLSTree figure (GTC 2024, 32 to 8,192 GPUs, 1 MiB to
// 16 GiB) and NVIDIA/nccl-tests issue 309 (4 nodes, 2.26.2). The time a level takes beyond NCCL's
// hop grows with the chunk that travels. Below 1 MiB only the 4 nodes were measured.
constexpr std::string_view kTreeSource =
    "NVIDIA GTC24 NVLSTree figure; nccl-tests issue 309, 4 nodes";
constexpr Points kTreeFill = {0.6, 2,  3,  5,  5.5, 6,  6.2, 10,  16,  19,  30,  42, 50,
                              62,  76, 76, 76, 80,  85, 105, 128, 150, 175, 175, 175};
constexpr Points kTreeEfficiency = {1,    1,    1,     1,     1,     1,     1,    1,    1,
                                    1,    1,    1,     1,     1,     1,     1,    0.93, 0.91,
                                    0.97, 1.00, 1.035, 1.035, 1.035, 1.035, 1.035};

// Two nodes are their own case: a level of exchange instead of a tree. NVIDIA/nccl-tests issue 309,
// 2 nodes.
constexpr std::string_view kInNetworkSource =
    "NVIDIA slides on NCCL: 32 H100, all-reduce 480 GB/s with InfiniBand SHARP (370 to 380 without)";

constexpr std::string_view kTwoNodeSource = "nccl-tests issue 309, 2 nodes";
constexpr Points kTwoNodeFill = {0.5, 3,  4.5, 6.5, 6.9, 8,   8.1, 12.4, 20.5, 41,  42,  43, 52,
                                 72,  90, 107, 170, 170, 170, 170, 170,  170,  170, 170, 170};
constexpr double kTwoNodeEfficiency = 1.01;

// Rings across nodes that NVLink limits (8 GPUs a node): per step, the difference between NCCL's LL
// and Simple hops as the message grows, and 0.92 of the bandwidth. A compromise between sources
// that disagree by up to 1.7 times in the middle sizes: aliyun/SimAI's nic_ratio table,
// nccl-tests-cluster at 10 nodes (slower), a GCP A3 Ultra recipe.
constexpr std::string_view kRingSource =
    "SimAI nic_ratio; xxrjun/nccl-tests-cluster N10 G8; GCP a3ultra recipe N2";
constexpr Points kRingFill = {0,   0,   0,   0.1, 0.1, 0.2, 0.3, 0.6, 1.0, 1.3, 1.6, 1.9, 2.2,
                              2.7, 3.2, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0};
constexpr Points kRingEfficiency = {0.4,  0.4,  0.4,  0.4,  0.4,  0.4,  0.4,  0.5,  0.6,
                                    0.75, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.85,
                                    0.85, 0.88, 0.92, 0.92, 0.92, 0.92, 0.92};

// Rings across nodes that NICs limit (1, 2 or 4 GPUs a node) behave as NCCL predicts them: at 10
// nodes within 8 % for 1 and 2 GPUs a node from 32 MiB, with NICs at 48.5 to 49 GB/s.
// xxrjun/nccl-tests-cluster.
constexpr std::string_view kNicRingSource =
    "NCCL tuning.cc; xxrjun/nccl-tests-cluster N10 G1, G2, G4";
constexpr double kNicRingEfficiency = 1.01;

// Every rank with every other, across nodes. nccl-tests-cluster, 10 nodes of 1 to 8 GPUs from 32
// MiB (NIC at 45 to 46 GB/s); smaller sizes are assumed to rise as a single transfer does.
constexpr std::string_view kAllToAllSource = "xxrjun/nccl-tests-cluster N10 all-to-all";
constexpr Points kAllToAllEfficiency = {0.05, 0.08, 0.12, 0.18, 0.24, 0.30, 0.36, 0.42, 0.48,
                                        0.54, 0.60, 0.68, 0.75, 0.80, 0.85, 0.88, 0.91, 0.93,
                                        0.94, 0.94, 0.94, 0.94, 0.94, 0.94, 0.94};

// One transfer between two nodes. vidur's pair (17 us; 1 MB in 54 us, 4 MB in 129 us) and, from 256
// MiB, 44 to 46 GB/s of nccl-tests-cluster; 64 MiB between the two sources (36 and 44 GB/s).
constexpr std::string_view kSendRecvSource = "vidur send_recv H100; xxrjun/nccl-tests-cluster N2";
constexpr Points kSendRecvEfficiency = {0.02, 0.03, 0.05, 0.08, 0.12, 0.19, 0.28, 0.33, 0.39,
                                        0.48, 0.59, 0.69, 0.78, 0.80, 0.82, 0.83, 0.84, 0.89,
                                        0.93, 0.94, 0.94, 0.94, 0.94, 0.94, 0.94};

Points flat(double value) {
  Points points;
  points.fill(value);
  return points;
}

struct Family {
  double latency_factor = 1;
  Points efficiency;
  Points fill{};
  Bytes least, most;
  int64_t most_ranks;
  Evidence evidence = Evidence::kPublished;
  std::string_view source;
};

CollectiveCorrection correction(const Family& family) {
  return {.latency_factor = family.latency_factor,
          .efficiency = {.values = family.efficiency},
          .fill_microseconds = {.values = family.fill},
          .least = family.least,
          .most = family.most,
          .most_ranks = family.most_ranks,
          .provenance = {.evidence = family.evidence, .source = std::string(family.source)}};
}

// 2, 4 and 8 ranks.
size_t column(int64_t ranks) { return ranks == 2 ? 0 : ranks == 4 ? 1 : 2; }

void add_node_corrections(NcclTuning& tuning) {
  for (const NodeRow& row : kNodeRows) {
    auto& of_kind = tuning.in_node[static_cast<size_t>(row.kind)];
    const CollectiveCorrection measured = correction({.latency_factor = row.latency_factor,
                                                      .efficiency = row.efficiency,
                                                      .least = row.least,
                                                      .most = row.most,
                                                      .most_ranks = 8,
                                                      .source = kNodeSource});
    if (row.kind == CollectiveKind::kSendRecv) {
      of_kind.fill(measured);
    } else {
      of_kind[column(row.ranks)] = measured;
    }
  }
  // A broadcast passes the same ring as an all-gather.
  tuning.in_node[static_cast<size_t>(CollectiveKind::kBroadcast)] =
      tuning.in_node[static_cast<size_t>(CollectiveKind::kAllGather)];
}

}  // namespace

void add_h100_corrections(NcclTuning& tuning) {
  add_node_corrections(tuning);
  tuning.tree = correction({.efficiency = kTreeEfficiency,
                            .fill = kTreeFill,
                            .least = bytes(8),
                            .most = gibibytes(16),
                            .most_ranks = 8192,
                            .source = kTreeSource});
  tuning.tree_two_nodes = correction({.efficiency = flat(kTwoNodeEfficiency),
                                      .fill = kTwoNodeFill,
                                      .least = bytes(8),
                                      .most = gibibytes(16),
                                      .most_ranks = 16,
                                      .source = kTwoNodeSource});
  tuning.ring = correction({.efficiency = kRingEfficiency,
                            .fill = kRingFill,
                            .least = mebibytes(1),
                            .most = gibibytes(16),
                            .most_ranks = 1024,
                            .source = kRingSource});
  tuning.nic_ring = correction({.efficiency = flat(kNicRingEfficiency),

                                .least = mebibytes(32),
                                .most = gibibytes(16),
                                .most_ranks = 40,
                                .source = kNicRingSource});
  // Nobody published a PAT measurement on H100: NCCL's own prediction stands.
  tuning.pat = correction({.efficiency = flat(1),
                           .least = bytes(1),
                           .most = Bytes(),
                           .most_ranks = 0,
                           .evidence = Evidence::kVendor,
                           .source = "NCCL tuning.cc"});
  // One figure: 480 GB/s of bus bandwidth on 32 GPUs with SHARP in the switches, where NVLink is the
  // limit as it is inside a node, and so is what medium sizes lose.
  const CollectiveCorrection& node =
      tuning.in_node[static_cast<size_t>(CollectiveKind::kAllReduce)].back();
  tuning.in_network_nvls = correction({.efficiency = node.efficiency.values,
                                       .least = gibibytes(1),
                                       .most = gibibytes(16),
                                       .most_ranks = 32,
                                       .source = kInNetworkSource});
  // Nobody published one rank a node: NCCL's latency and a maintainer's rule of thumb.
  tuning.in_network_direct = correction({.efficiency = flat(1),
                                         .least = bytes(1),
                                         .most = Bytes(),
                                         .most_ranks = 0,
                                         .evidence = Evidence::kVendor,
                                         .source = "NCCL tuning.cc; NVIDIA/nccl issue 320"});
  tuning.all_to_all = correction({.efficiency = kAllToAllEfficiency,
                                  .least = mebibytes(32),
                                  .most = gibibytes(16),
                                  .most_ranks = 80,
                                  .source = kAllToAllSource});
  tuning.send_recv = correction({.latency_factor = 0.83,
                                 .efficiency = kSendRecvEfficiency,
                                 .least = kibibytes(32),
                                 .most = gibibytes(16),
                                 .most_ranks = 2,
                                 .source = kSendRecvSource});
}

}  // namespace herdsim

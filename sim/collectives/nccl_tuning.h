// NCCL's own constants, by release, and what measurements say of them.
//
// NCCL chooses an algorithm and a protocol by predicting time = latency + bytes / bandwidth for
// each pair (src/graph/tuning.cc). The same prediction is made here, with two departures. The
// latency of a network hop depends on how far apart the hosts are, which NCCL does not know. And a
// prediction is then corrected by a measured efficiency, since NCCL's numbers choose well but
// describe medium sizes badly (10 to 60 % off).
//
//   const NcclTuning tuning = h100_tuning("2.20");
//   plan_collective(CollectiveKind::kAllGather, mebibytes(64), group, tuning);
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/provenance.h"
#include "sim/base/units.h"
#include "sim/collectives/collective.h"

namespace herdsim {

// One number a protocol, in NCCL's order.
struct PerProtocol {
  double ll = 0, ll128 = 0, simple = 0;
  double at(Protocol protocol) const {
    return protocol == Protocol::kSimple ? simple : protocol == Protocol::kLl ? ll : ll128;
  }
};

// A positive function of message size: its value at every power of two from 1 KiB to 16 GiB, a
// power law between two of them, constant outside. As an efficiency it must less than double from
// one to the next, so that time grows with size.
struct SizeCurve {
  static constexpr int kFirstLog2 = 10;
  static constexpr size_t kPoints = 25;
  std::array<double, kPoints> values{};
  double at(Bytes bytes) const;
};

// How measured times relate to the prediction for one family of collectives:
//   latency = latency_factor * least predicted latency of the family + stages * fill(bytes)
//   rate    = bandwidth of large messages * efficiency(bytes)
// `stages` is what a pipeline of chunks passes one after another: the levels of a tree (log2 of the
// nodes), or the steps of a ring.
struct CollectiveCorrection {
  double latency_factor = 1;
  SizeCurve efficiency;
  SizeCurve fill_microseconds;  // a stage; zero inside a node
  Bytes least, most;            // sizes that were measured
  int64_t most_ranks = 0;       // the largest group measured
  Provenance provenance;
};

// The whole time of one kind on one shape of group, measured there: by nccl-tests or the calibration
// harness on the user's own machine. Between two sizes time is linear in the size.
struct MeasuredCollective {
  struct Point {
    Bytes size;
    Duration time;
  };
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int64_t ranks = 0, nodes = 0;
  std::vector<Point> points;  // by increasing size; time never falls; not empty

  // Requires: size within the outermost points.
  Duration at(Bytes size) const;
};

struct NcclTuning {
  std::string version;  // the release of the table whose constants these are

  // Microseconds: once, and for every hop over NVLink and over the network.
  PerProtocol tree_base, tree_nvlink, tree_net;
  PerProtocol ring_base, ring_nvlink, ring_net;
  PerProtocol ring_net_one_rank;  // a node
  double nvls_nvlink = 0, nvls_tree_net = 0;
  bool has_pat = false;  // parallel aggregated trees: all-gather, reduce-scatter, one rank a node
  double pat_base = 8, pat_net = 14, pat_per_rank = 2.8;
  double p2p_peer = 4.7;    // of an all-to-all, for each remote peer
  double network_post = 1;  // CPU time to post a transfer: 1 Intel, 2 AMD; three times for Simple
  std::array<double, kHopClasses> hop_extra{};
  // A fabric measured in a job: a ring across hosts takes base + (R - 1) * ring_step(), microseconds, where bytes / R
  // pass at min(bandwidth, ring_step_bandwidth), of which a channel has `ring_step_slice` bytes under way before they
  // may travel on. Zero hop: as predicted.
  double ring_step_hop = 0, ring_step_bandwidth = 0, ring_step_slice = 0;
  // Small all-reduces on it, over at most so many ranks of several hosts: this long a pair of ranks, microseconds.
  double small_reduce_pair = 0;
  int64_t small_reduce_ranks = 32;

  // All-reduces in InfiniBand switches (CollNet with SHARP): one pass over the network, whatever the
  // number of nodes. NCCL's latencies; with NVLS in the node, or else directly between GPUs.
  bool has_in_network = false;
  double in_network_nvls_net = 18, in_network_nvlink = 3.7, in_network_net = 31, in_network_per_gpu = 0.4;

  // A torus, which runs no NCCL: microseconds a hop, and a cable one way, gigabytes per second (0: none).
  double torus_hop = 1;
  double torus_link = 0;

  // What a channel has in flight before it waits for credits, and microseconds until they are back, by how far apart the
  // hosts are; zero: no bound. A channel carries window / round trip at most: a receiver grants its buffer in advance, so
  // this is also what keeps many senders to one receiver from overrunning it.
  Bytes send_window = mebibytes(1), collective_window = mebibytes(4);
  std::array<double, kHopClasses> round_trip{};

  // Gigabytes per second. What a GPU's ports carry, each way: the bound of everything.
  double nvlink_port = 450, nic_port = 50;
  double ring_bandwidth = 360;      // bus bandwidth of a ring where NVLink limits it
  double nic_bandwidth = 48;        // that channels reach on one 400 Gb/s NIC
  // That an all-reduce in the switches reaches on it, each way: a maintainer's 20 of 25 GB/s
  // (NVIDIA/nccl issue 320).
  double in_network_nic = 40;
  double nvls_channel = 40;         // one NVLS channel on NVLink
  double ring_ll_factor = 0.5;      // LL carries a flag with every word
  std::array<double, 3> ll_most{};  // 1, 2, more nodes
  // Before 2.22: NVLS is predicted as this share of its channels' bandwidth. 0 since.
  double early_nvls_ratio = 0;

  // Blocks, hence SMs.
  int64_t node_channels = 24, network_channels_a_nic = 4, most_network_channels = 16;
  int64_t nvls_blocks = 16, p2p_node_channels = 16, p2p_network_channels = 4;

  // In a node: by kind and ranks (2, 4, 8). Across nodes: by family.
  std::array<std::array<CollectiveCorrection, 3>, kCollectiveKinds> in_node;
  CollectiveCorrection tree, tree_two_nodes;
  CollectiveCorrection ring, nic_ring;  // limited by NVLink (8 ranks a node), by the NICs (fewer)
  CollectiveCorrection pat, all_to_all, send_recv;
  CollectiveCorrection in_network_nvls, in_network_direct;  // more than two ranks a node, fewer

  // Win over all of the above for their own kind and group, and for no other: a curve of eight GPUs
  // whose sums are made in the switch says nothing of an all-gather, nor two nodes of sixteen.
  std::vector<MeasuredCollective> measured;
};

// A step of a ring whose bytes take `wire`, of which the slices take `slice` that are received before they are sent on:
// the longer of the wire and of the way of the first slices, and somewhat more where they are alike.
//   step^3 = wire^3 + (hop + min(wire, slice))^3
// So are one cloud's all-gathers of 1 GiB over 16 to 512 GPUs, and smaller ones in its training steps.
double ring_step(double wire, double hop, double slice);
// The hop of a step that was measured. Requires: step >= wire.
double ring_hop(double step, double wire, double slice);

// For a host with 8 H100, NVSwitch and a 400 Gb/s NIC a GPU. `nccl_version` is "2.20" or "2.20.5";
// a release that is not in the table takes the row of the nearest one before it, or of the first.
NcclTuning h100_tuning(std::string_view nccl_version);
// Releases in the table, ascending.
std::vector<std::string> nccl_versions();
// Adds a fault if the text is not a version ("2.20", "2.20.5") of NCCL 2.19 or later.
void append_nccl_version_faults(std::string_view nccl_version, std::string_view field,
                                Faults& faults);

}  // namespace herdsim

// NCCL's prediction of one collective for every pair of algorithm and protocol it would consider,
// and its choice.
//
// time = latency + bytes / bandwidth, with R ranks on N nodes, k steps of which m cross the
// network, and a bus bandwidth that is turned into bytes of the message a second:
//   ring      base + (k - m) * nvlink + m * net        R / k           k = R - 1, or 2 (R - 1) for
//   all-reduce tree      base + 2 [(R/N - 1) nvlink + log2(N) net]   1 / 2 nvls      nvlink R / k
//   nvlstree  nvlink + 2 log2(N) net                   R / k
//   collnet   nvlink + net of NVLS, or 2 [nvlink + 0.4 (R/N - 1)] + net: no term in N
//   pat       base + log2(N) net / 3.5 + 2.8 R         R / k
// Source: NVIDIA/nccl src/graph/tuning.cc, ncclTopoTuneModel and ncclTopoGetAlgoTime, releases 2.19
// to 2.30.
#pragma once

#include <optional>

#include "sim/collectives/nccl_tuning.h"

namespace herdsim {

struct NcclPrediction {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  double latency_us = 0;
  double bandwidth = 0;  // GB/s of the message, not of the bus
  double time_us = 0;
};

// Ring channels: NVLink carries `node_channels` inside a node; across nodes four a NIC, at most 16.
int64_t ring_channels(const GroupShape& group, const NcclTuning& tuning);
// What a ring of the group carries on every edge, GB/s.
double ring_bus_bandwidth(const GroupShape& group, const NcclTuning& tuning);
// log2 of the nodes, rounded down: levels of NCCL's trees.
int64_t tree_levels(const GroupShape& group);

// What is predicted for one pair, or nothing if NCCL would not consider it.
// Requires: more than one rank; kind is not all-to-all or send/recv, which have no choice.
std::optional<NcclPrediction> nccl_prediction(CollectiveKind kind, Bytes bytes,
                                              const GroupShape& group, const NcclTuning& tuning,
                                              Algorithm algorithm, Protocol protocol);

// Whether NCCL would consider the algorithm; of all-to-all and send/recv, whether it is the one
// there is.
bool applies_to(CollectiveKind kind, const GroupShape& group, const NcclTuning& tuning,
                Algorithm algorithm);

// The pair with the least predicted time; and, of all pairs of its family (rings; trees and NVLS;
// pat; inside a node all of them together), the least latency and the bandwidth that large messages
// get, which is what corrections refer to.
struct NcclChoice {
  NcclPrediction best;
  double least_latency_us = 0;
  double wire_bandwidth = 0;  // GB/s of the message
};
// With `asked` the best protocol of that algorithm, and the bandwidth of its own wires. Requires:
// it applies.
NcclChoice nccl_choice(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                       const NcclTuning& tuning, std::optional<Algorithm> asked = {});

}  // namespace herdsim

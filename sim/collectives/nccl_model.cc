#include "sim/collectives/nccl_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace herdsim {
namespace {

enum class Family : uint8_t { kRing, kTree, kPat, kInNetwork };

Family family_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return Family::kRing;
    case Algorithm::kPat:
      return Family::kPat;
    case Algorithm::kCollNet:
      return Family::kInNetwork;
    case Algorithm::kTree:
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree:
    case Algorithm::kPairwise:
    case Algorithm::kTorusRings:
    case Algorithm::kToStore:
    case Algorithm::kFromStore:
      break;
  }
  return Family::kTree;
}

struct Candidate {
  Algorithm algorithm;
  Protocol protocol;
};
// In NCCL's order; the first of equals wins.
constexpr std::array<Candidate, 10> kCandidates = {{{Algorithm::kTree, Protocol::kLl},
                                                   {Algorithm::kTree, Protocol::kLl128},
                                                   {Algorithm::kTree, Protocol::kSimple},
                                                   {Algorithm::kRing, Protocol::kLl},
                                                   {Algorithm::kRing, Protocol::kLl128},
                                                   {Algorithm::kRing, Protocol::kSimple},
                                                   {Algorithm::kNvls, Protocol::kSimple},
                                                   {Algorithm::kNvlsTree, Protocol::kSimple},
                                                   {Algorithm::kPat, Protocol::kSimple},
                                                   {Algorithm::kCollNet, Protocol::kSimple}}};

// Index into constants that NCCL gives for 1, 2 and more nodes.
size_t nodes_index(const GroupShape& g) {
  return static_cast<size_t>(std::min<int64_t>(g.nodes, 3) - 1);
}

double as_double(int64_t n) { return static_cast<double>(n); }

double ring_steps(CollectiveKind kind, int64_t ranks) {
  return as_double(kind == CollectiveKind::kAllReduce ? 2 * (ranks - 1) : ranks - 1);
}

bool is_pairwise(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv;
}

// NVLS needs a switch and more than two GPUs on it.
bool has_nvls(const GroupShape& g) { return g.ranks_per_node() > 2; }

// NCCL's network hop for hosts this far apart. Half of its constant is software that no proximity
// saves.
double network_hop(double net, double extra) { return std::max(net / 2, net + extra); }

// The mean of what the ring's host-to-host edges add to NCCL's network hop.
double mean_hop_extra(const GroupShape& g, const NcclTuning& t) {
  double sum = 0;
  int64_t edges = 0;
  for (size_t hop = 0; hop < kHopClasses; ++hop) {
    sum += as_double(g.edges[hop]) * t.hop_extra[hop];
    edges += g.edges[hop];
  }
  return edges > 0 ? sum / as_double(edges) : t.hop_extra[static_cast<size_t>(g.farthest)];
}

double ring_latency(CollectiveKind kind, const GroupShape& g, const NcclTuning& t, Protocol p) {
  const double steps = ring_steps(kind, g.ranks);
  if (g.nodes == 1) return t.ring_base.at(p) + steps * t.ring_nvlink.at(p);
  const double network_steps = ring_steps(kind, g.nodes);
  const double post = t.network_post * (p == Protocol::kSimple ? 3 : 1);
  const double nvlink = std::max(t.ring_nvlink.at(p), post);
  // With one rank a node receive and send share the GPU's NIC, and a hop is longer.
  const double net = (g.ranks_per_node() == 1 ? t.ring_net_one_rank : t.ring_net).at(p);
  return t.ring_base.at(p) + (steps - network_steps) * nvlink +
         network_steps * network_hop(net, mean_hop_extra(g, t));
}

// Tree levels pair hosts far apart, so each costs the farthest class.
double network_level(const GroupShape& g, const NcclTuning& t, double net) {
  return as_double(tree_levels(g)) * network_hop(net, t.hop_extra[static_cast<size_t>(g.farthest)]);
}

// Once up and down the node, once into the switches and out.
double in_network_latency(const GroupShape& g, const NcclTuning& t) {
  const double extra = t.hop_extra[static_cast<size_t>(g.farthest)];
  if (has_nvls(g)) return t.nvls_nvlink + network_hop(t.in_network_nvls_net, extra);
  const double gpus = as_double(g.ranks_per_node() - 1);
  return 2 * (std::min(1.0, gpus) * t.in_network_nvlink + gpus * t.in_network_per_gpu) +
         network_hop(t.in_network_net, extra);
}

double latency(CollectiveKind kind, const GroupShape& g, const NcclTuning& t, Algorithm a,
               Protocol p) {
  switch (a) {
    case Algorithm::kRing:
      return ring_latency(kind, g, t, p);
    case Algorithm::kTree:
      return t.tree_base.at(p) + 2 * (as_double(g.ranks_per_node() - 1) * t.tree_nvlink.at(p) +
                                      network_level(g, t, t.tree_net.at(p)));
    case Algorithm::kNvls:
      return t.nvls_nvlink;
    case Algorithm::kNvlsTree:
      return t.nvls_nvlink + 2 * network_level(g, t, t.nvls_tree_net);
    case Algorithm::kPat:
      return t.pat_base + network_level(g, t, t.pat_net) / 3.5 +
             t.pat_per_rank * as_double(g.ranks);
    case Algorithm::kCollNet:
      return in_network_latency(g, t);
    case Algorithm::kPairwise:
    case Algorithm::kTorusRings:
    case Algorithm::kToStore:
    case Algorithm::kFromStore:
      break;
  }
  HERDSIM_CHECK(false) << algorithm_name(a) << " is none of NCCL's choices";
  return 0;
}

double ring_bandwidth_of(const GroupShape& g, const NcclTuning& t, Protocol p) {
  const double bus = ring_bus_bandwidth(g, t);
  switch (p) {
    case Protocol::kSimple:
      return bus;
    case Protocol::kLl128:
      return std::min(0.92 * bus, as_double(ring_channels(g, t)) * 36.7);
    case Protocol::kLl:
      return std::min(t.ring_ll_factor * bus, t.ll_most[nodes_index(g)]);
  }
  return 0;
}

double tree_bandwidth_of(const GroupShape& g, const NcclTuning& t, Protocol p) {
  constexpr std::array<double, 3> kChannelMost = {38.7, 41.4, 36.0};
  constexpr std::array<double, 3> kChannelMostLl128 = {36.7, 36.7, 29.0};
  const double channels = as_double(ring_channels(g, t));
  const double bus =
      std::min(0.92 * ring_bus_bandwidth(g, t), channels * kChannelMost[nodes_index(g)]);
  switch (p) {
    case Protocol::kSimple:
      return bus;
    case Protocol::kLl128:
      return std::min(bus * (g.nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                      channels * kChannelMostLl128[nodes_index(g)]);
    case Protocol::kLl:
      return bus / 3.8;
  }
  return 0;
}

// One channel a GPU of the node, at most those of a host of 8.
double nvls_channels(const GroupShape& g) {
  return as_double(std::min<int64_t>(8, g.ranks_per_node()));
}

double nvls_node_bus(const GroupShape& g, const NcclTuning& t) {
  return 2 * 0.85 * t.nvls_channel * (nvls_channels(g) - 1);
}

// What NVLS moves, as a bus bandwidth: one channel a GPU of the node, up through the switch and
// down, the last of them busy with the reduction. Across nodes a channel is at most what its NIC
// and its part of a tree carry.
double nvls_bus_bandwidth(const GroupShape& g, const NcclTuning& t) {
  const double gpus = as_double(g.ranks_per_node());
  const double node = nvls_node_bus(g, t);
  if (g.nodes == 1) return node;
  const double network =
      g.nodes == 2 ? std::min(2 * t.nic_bandwidth, 57.7) : std::min(t.nic_bandwidth, 45.5);
  return std::min(node, gpus * network);
}

// GB/s of the message, as releases before 2.22 predicted it.
double early_nvls_bandwidth(const GroupShape& g, const NcclTuning& t) {
  const double network = g.nodes == 2 ? t.nic_bandwidth : t.nic_bandwidth / 2;
  const double channel = g.nodes == 1 ? t.nvls_channel : std::min(t.nvls_channel, network);
  return nvls_channels(g) * channel * t.early_nvls_ratio;
}

// Bytes of the message a byte on each edge of a ring. A broadcast passes every edge once.
double message_of_bus(CollectiveKind kind, const GroupShape& g) {
  return kind == CollectiveKind::kBroadcast ? 1.0 : as_double(g.ranks) / ring_steps(kind, g.ranks);
}

// GB/s of the message: every NIC takes a part of it to the switches once and the sum back once, and
// NVLink does what it does in one node.
double in_network_bandwidth(CollectiveKind kind, const GroupShape& g, const NcclTuning& t) {
  const double nics = t.in_network_nic * as_double(g.ranks_per_node());
  if (g.ranks_per_node() == 1) return nics;
  const double node =
      has_nvls(g) ? nvls_node_bus(g, t) * message_of_bus(kind, g) : t.ring_bandwidth / 2;
  return std::min(nics, node);
}

// GB/s of the message.
double bandwidth(CollectiveKind kind, const GroupShape& g, const NcclTuning& t, Algorithm a,
                 Protocol p) {
  switch (a) {
    case Algorithm::kRing:
      return ring_bandwidth_of(g, t, p) * message_of_bus(kind, g);
    case Algorithm::kTree:
      return tree_bandwidth_of(g, t, p) / 2;
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree:
      return t.early_nvls_ratio > 0 ? early_nvls_bandwidth(g, t)
                                    : nvls_bus_bandwidth(g, t) * message_of_bus(kind, g);
    case Algorithm::kPat:
      return 0.75 * ring_bus_bandwidth(g, t) * message_of_bus(kind, g);
    case Algorithm::kCollNet:
      return in_network_bandwidth(kind, g, t);
    case Algorithm::kPairwise:
    case Algorithm::kTorusRings:
    case Algorithm::kToStore:
    case Algorithm::kFromStore:
      break;
  }
  HERDSIM_CHECK(false) << algorithm_name(a) << " is none of NCCL's choices";
  return 0;
}

// What the wires give a large message in the family, whichever release predicts it.
double wire_bandwidth(CollectiveKind kind, const GroupShape& g, const NcclTuning& t, Algorithm a) {
  if (family_of(a) != Family::kTree) return bandwidth(kind, g, t, a, Protocol::kSimple);
  if (has_nvls(g)) return nvls_bus_bandwidth(g, t) * message_of_bus(kind, g);
  return bandwidth(kind, g, t, Algorithm::kTree, Protocol::kSimple);
}

// Of the algorithm alone.
double own_wire_bandwidth(CollectiveKind kind, const GroupShape& g, const NcclTuning& t, Algorithm a) {
  const bool nvls = a == Algorithm::kNvls || a == Algorithm::kNvlsTree;
  return nvls ? wire_bandwidth(kind, g, t, a) : bandwidth(kind, g, t, a, Protocol::kSimple);
}

// "Trees are not perfectly sticking to the model for medium sizes": NCCL's factors for 64 B, 128 B,
// ... 256 MiB.
double tree_size_factor(Bytes bytes, Protocol p) {
  constexpr size_t kSizes = 23;
  constexpr std::array<double, kSizes> kLl = {1,  1,  1,  1,  .9, .8, .7, .7, .7, .7, .6, .5,
                                              .4, .4, .5, .6, .7, .8, .9, 1,  1,  1,  1};
  constexpr std::array<double, kSizes> kLl128 = {1,  1,  1,  1,  1,  .9, .8, .8, .8, .7, .6, .6,
                                                 .6, .6, .6, .6, .8, .9, .9, .9, .9, 1,  1};
  constexpr std::array<double, kSizes> kSimple = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                                  .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};
  const auto blocks = static_cast<uint64_t>(bytes.count()) >> 6;
  const size_t index = blocks == 0 ? 0 : static_cast<size_t>(std::bit_width(blocks) - 1);
  if (index >= kSizes) return 1;
  return p == Protocol::kLl ? kLl[index] : p == Protocol::kLl128 ? kLl128[index] : kSimple[index];
}

}  // namespace

int64_t tree_levels(const GroupShape& g) {
  return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, g.nodes))) - 1;
}

int64_t ring_channels(const GroupShape& g, const NcclTuning& t) {
  if (g.nodes == 1) return t.node_channels;
  return std::min(t.most_network_channels, t.network_channels_a_nic * g.ranks_per_node());
}

double ring_bus_bandwidth(const GroupShape& g, const NcclTuning& t) {
  if (g.nodes == 1) return t.ring_bandwidth;
  return std::min(t.ring_bandwidth, t.nic_bandwidth * as_double(g.ranks_per_node()));
}

bool applies_to(CollectiveKind kind, const GroupShape& g, const NcclTuning& t, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return !is_pairwise(kind);
    case Algorithm::kTree:
      return kind == CollectiveKind::kAllReduce;
    case Algorithm::kNvls:
      return kind == CollectiveKind::kAllReduce && g.nodes == 1 && has_nvls(g);
    case Algorithm::kNvlsTree:
      return kind == CollectiveKind::kAllReduce && g.nodes > 1 && has_nvls(g);
    case Algorithm::kPat:
      return t.has_pat && g.nodes > 1 && g.ranks_per_node() == 1 &&
             (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter);
    case Algorithm::kCollNet:
      return t.has_in_network && kind == CollectiveKind::kAllReduce && g.nodes > 1;
    case Algorithm::kPairwise:
      return is_pairwise(kind);
    case Algorithm::kTorusRings:
    case Algorithm::kToStore:
    case Algorithm::kFromStore:
      break;
  }
  return false;
}

std::optional<NcclPrediction> nccl_prediction(CollectiveKind kind, Bytes bytes, const GroupShape& g,
                                              const NcclTuning& t, Algorithm algorithm,
                                              Protocol protocol) {
  if (!applies_to(kind, g, t, algorithm)) return std::nullopt;
  NcclPrediction prediction{.algorithm = algorithm,
                            .protocol = protocol,
                            .latency_us = latency(kind, g, t, algorithm, protocol),
                            .bandwidth = bandwidth(kind, g, t, algorithm, protocol)};
  double effective = prediction.bandwidth;
  double paid_latency = prediction.latency_us;
  if (algorithm == Algorithm::kTree) effective *= tree_size_factor(bytes, protocol);
  const bool ring_plateau = algorithm == Algorithm::kRing && protocol == Protocol::kSimple &&
                            kind == CollectiveKind::kAllReduce && g.nodes > 1 &&
                            bytes.count() >= 64 * ring_channels(g, t) * g.ranks;
  if (ring_plateau) paid_latency *= 1.4;
  prediction.time_us = paid_latency + as_double(bytes.count()) / (1000 * effective);
  return prediction;
}

NcclChoice nccl_choice(CollectiveKind kind, Bytes bytes, const GroupShape& g, const NcclTuning& t,
                       std::optional<Algorithm> asked) {
  std::array<std::optional<NcclPrediction>, kCandidates.size()> predictions;
  const NcclPrediction* best = nullptr;
  for (size_t i = 0; i < kCandidates.size(); ++i) {
    const auto& [algorithm, protocol] = kCandidates[i];
    predictions[i] = nccl_prediction(kind, bytes, g, t, algorithm, protocol);
    if (asked && algorithm != *asked) continue;
    if (predictions[i] && (best == nullptr || predictions[i]->time_us < best->time_us)) {
      best = &*predictions[i];
    }
  }
  // A ring applies to every kind, so there is a best. Inside a node measurements do not tell
  // families apart.
  NcclChoice choice{.best = *best, .least_latency_us = best->latency_us};
  for (const auto& prediction : predictions) {
    if (!prediction) continue;
    const Algorithm algorithm = prediction->algorithm;
    if (g.nodes > 1 && family_of(algorithm) != family_of(best->algorithm)) continue;
    choice.least_latency_us = std::min(choice.least_latency_us, prediction->latency_us);
    if (prediction->protocol != Protocol::kSimple) continue;
    if (asked && algorithm != *asked) continue;
    choice.wire_bandwidth = std::max(choice.wire_bandwidth, asked ? own_wire_bandwidth(kind, g, t, algorithm) : wire_bandwidth(kind, g, t, algorithm));
  }
  return choice;
}

}  // namespace herdsim

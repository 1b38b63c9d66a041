#include <numeric>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

// Fisher-Yates with draws mix64(seed, i): a 64-bit draw reduced modulo at most 2^21 hosts is biased
// by less than 2^-43.
std::vector<size_t> shuffled_hosts(size_t hosts, uint64_t seed) {
  std::vector<size_t> order(hosts);
  std::iota(order.begin(), order.end(), size_t{0});
  const uint64_t stream = mix64(seed ^ 0x706c6163656d656eULL);  // "placemen"
  for (size_t i = hosts; i > 1; --i) {
    std::swap(order[i - 1], order[mix64(stream + i) % i]);
  }
  return order;
}

}  // namespace

TypedVector<RankId, GpuId> place_ranks(const ClusterSpec& spec, int64_t ranks, uint64_t seed) {
  HERDSIM_CHECK(ranks >= 0 && ranks <= spec.gpus) << ranks << " ranks on " << spec.gpus << " GPUs";
  const auto count = static_cast<size_t>(ranks);
  TypedVector<RankId, GpuId> placement;
  placement.reserve(count);
  switch (spec.placement) {
    case PlacementKind::kTopologyOrder:
      for (size_t rank = 0; rank < count; ++rank) placement.push_back(GpuId(rank));
      break;
    case PlacementKind::kRandomHosts: {
      const auto per_host = static_cast<size_t>(spec.gpus_per_host);
      const std::vector<size_t> hosts =
          shuffled_hosts(static_cast<size_t>(spec.gpus) / per_host, seed);
      for (size_t rank = 0; rank < count; ++rank) {
        placement.push_back(GpuId(hosts[rank / per_host] * per_host + rank % per_host));
      }
      break;
    }
  }
  return placement;
}

}  // namespace herdsim

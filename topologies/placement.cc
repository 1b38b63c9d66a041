#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"
#include "topologies/cluster.h"

namespace herdsim {
namespace {

// Fisher-Yates with draws mix64(stream, i): a 64-bit draw reduced modulo at most 2^21 hosts is
// biased by less than 2^-43.
std::vector<size_t> shuffled(std::vector<size_t> order, uint64_t stream) {
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[mix64(stream + i) % i]);
  }
  return order;
}

std::vector<size_t> ascending(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

constexpr uint64_t kPlacementStream = 0x706c6163656d656eULL;    // "placemen"
constexpr uint64_t kUnavailableStream = 0x756e617661696c61ULL;  // "unavaila"

size_t hosts_of(const ClusterSpec& spec) {
  return static_cast<size_t>(spec.gpus / spec.gpus_per_host);
}

size_t drawn_unavailable(const ClusterSpec& spec) {
  return static_cast<size_t>(spec.unavailable_fraction * static_cast<double>(hosts_of(spec)));
}

// In topology order. The named hosts are out; of the others, as many as the fraction says.
std::vector<size_t> available_hosts(const ClusterSpec& spec, uint64_t seed) {
  std::vector<bool> out(hosts_of(spec));
  for (const int64_t host : spec.unavailable_hosts) out[static_cast<size_t>(host)] = true;
  std::vector<size_t> hosts;
  for (size_t h = 0; h < out.size(); ++h) {
    if (!out[h]) hosts.push_back(h);
  }
  const size_t drawn = std::min(drawn_unavailable(spec), hosts.size());
  if (drawn == 0) return hosts;
  hosts = shuffled(std::move(hosts), mix64(seed ^ kUnavailableStream));
  hosts.erase(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(drawn));
  std::sort(hosts.begin(), hosts.end());
  return hosts;
}

// Pod by pod as many whole blocks of hosts as fit; what is left over comes last, so that replicas
// straddle pods only where nothing else remains.
std::vector<size_t> packed(const std::vector<size_t>& hosts, size_t hosts_per_pod, size_t block) {
  std::vector<size_t> whole, rest;
  for (size_t first = 0, last = 0; first < hosts.size(); first = last) {
    const size_t pod = hosts[first] / hosts_per_pod;
    while (last < hosts.size() && hosts[last] / hosts_per_pod == pod) ++last;
    const size_t cut = first + (last - first) / block * block;
    whole.insert(whole.end(), hosts.begin() + static_cast<std::ptrdiff_t>(first),
                 hosts.begin() + static_cast<std::ptrdiff_t>(cut));
    rest.insert(rest.end(), hosts.begin() + static_cast<std::ptrdiff_t>(cut),
                hosts.begin() + static_cast<std::ptrdiff_t>(last));
  }
  whole.insert(whole.end(), rest.begin(), rest.end());
  return whole;
}

std::vector<size_t> ordered_hosts(const ClusterSpec& spec, const PlacementQuestion& q) {
  std::vector<size_t> hosts = available_hosts(spec, q.seed);
  switch (spec.placement) {
    case PlacementKind::kTopologyOrder:
    case PlacementKind::kRankMap:
      break;
    case PlacementKind::kRandomHosts:
      return shuffled(std::move(hosts), mix64(q.seed ^ kPlacementStream));
    case PlacementKind::kPackedPods: {
      const int64_t block = (q.ranks_per_replica + spec.gpus_per_host - 1) / spec.gpus_per_host;
      return packed(hosts, static_cast<size_t>(spec.gpus_per_pod / spec.gpus_per_host),
                    static_cast<size_t>(std::max<int64_t>(1, block)));
    }
  }
  return hosts;
}

}  // namespace

const std::vector<Placement>& placements() {
  static const std::vector<Placement> rows = {
      {PlacementKind::kTopologyOrder, "TOPOLOGY_ORDER",
       "Ranks fill the available hosts in the order of the racks. With unavailable hosts the job "
       "is "
       "fragmented around them.",
       "arXiv:2407.21783 section 3.3.1: the scheduler is aware of the network's topology"},
      {PlacementKind::kRandomHosts, "RANDOM_HOSTS",
       "Available hosts shuffled by the seed; the ranks of a host stay together.",
       "the other extreme, for comparison"},
      {PlacementKind::kPackedPods, "PACKED_PODS",
       "As many whole model replicas in each pod as fit, so that only data-parallel traffic leaves "
       "a pod.",
       "what a scheduler does that knows the job's parallelism"},
      {PlacementKind::kRankMap, "RANK_MAP",
       "The GPU of each rank from the file cluster.rank_map: whole numbers in the order of the "
       "ranks, separated by white space; # begins a comment.",
       "the user's scheduler"},
  };
  return rows;
}

int64_t usable_gpus(const ClusterSpec& spec) {
  std::vector<int64_t> named = spec.unavailable_hosts;
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  const size_t out = std::min(hosts_of(spec), named.size() + drawn_unavailable(spec));
  return static_cast<int64_t>(hosts_of(spec) - out) * spec.gpus_per_host;
}

TypedVector<RankId, GpuId> place_ranks(const ClusterSpec& spec, const PlacementQuestion& q) {
  HERDSIM_CHECK(q.ranks >= 0 && q.ranks <= usable_gpus(spec))
      << q.ranks << " ranks on " << usable_gpus(spec) << " GPUs";
  const auto count = static_cast<size_t>(q.ranks);
  TypedVector<RankId, GpuId> placement;
  placement.reserve(count);
  if (spec.placement == PlacementKind::kRankMap) {
    HERDSIM_CHECK(spec.rank_map.size() >= count) << spec.rank_map.size() << " ranks in the map";
    for (size_t rank = 0; rank < count; ++rank) {
      placement.push_back(GpuId(static_cast<size_t>(spec.rank_map[rank])));
    }
    return placement;
  }
  const bool plain = spec.placement == PlacementKind::kTopologyOrder &&
                     spec.unavailable_hosts.empty() && spec.unavailable_fraction == 0;
  const auto per_host = static_cast<size_t>(spec.gpus_per_host);
  const std::vector<size_t> hosts =
      plain ? ascending((count + per_host - 1) / per_host) : ordered_hosts(spec, q);
  for (size_t rank = 0; rank < count; ++rank) {
    placement.push_back(GpuId(hosts[rank / per_host] * per_host + rank % per_host));
  }
  return placement;
}

}  // namespace herdsim

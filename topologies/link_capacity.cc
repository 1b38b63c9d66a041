#include "topologies/link_capacity.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {

TypedVector<LinkId, Bandwidth> link_capacities(const Fabric& fabric, const ClusterSpec& spec,
                                               const TypedVector<RankId, GpuId>& placement) {
  TypedVector<LinkId, Bandwidth> capacity;
  capacity.reserve(fabric.links().size());
  const Ratio efficiency(spec.nic_efficiency);
  for (const Link& link : fabric.links()) {
    const bool network = link.kind != LinkKind::kNvLink && link.kind != LinkKind::kPcie;
    capacity.push_back(network ? link.capacity * efficiency : link.capacity);
  }
  const Bandwidth slowest = Bandwidth::from_bytes_per_second(1);
  for (const Degradation& part : spec.degraded) {
    if (part.nic_factor == 1.0) continue;
    HERDSIM_CHECK(part.gpu >= 0 && static_cast<size_t>(part.gpu) < placement.size())
        << "degraded rank " << part.gpu << " of " << placement.size();
    const Node& nic =
        fabric.nodes()[fabric.nic_of(placement[RankId(static_cast<size_t>(part.gpu))])];
    for (const LinkId link : {nic.up, nic.down}) {
      capacity[link] = std::max(slowest, capacity[link] * Ratio(part.nic_factor));
    }
  }
  return capacity;
}

}  // namespace herdsim

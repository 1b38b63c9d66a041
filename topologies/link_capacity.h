// What each link really carries: the fabric holds line rates and never changes, a run holds these.
#pragma once

#include "sim/base/ids.h"
#include "sim/fabric/fabric.h"
#include "topologies/cluster.h"

namespace herdsim {

// One capacity a link. Network links (NIC and above) carry `nic_efficiency` of their line rate:
// headers, credits and acknowledgements cost the same share everywhere, so ratios between tiers
// stay those of the line rates. NVLink and PCIe are given as usable rates. A degraded rank's NIC
// has its factor on top, both directions. Requires: every degraded rank is placed. Ensures:
// Fabric::can_bind stays true of these capacities.
TypedVector<LinkId, Bandwidth> link_capacities(const Fabric& fabric, const ClusterSpec& spec,
                                               const TypedVector<RankId, GpuId>& placement);

}  // namespace herdsim

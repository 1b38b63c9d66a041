// What each link really carries: the fabric holds line rates and never changes, a run holds these.
//
// Network links (NIC and above) carry `nic_efficiency` of their line rate: headers, credits and
// acknowledgements cost the same share everywhere, so ratios between tiers stay those of the line
// rates. NVLink and PCIe are given as usable rates.
//
// Degraded parts take their factors on top, both directions:
//   - A NIC that is down from the start: NCCL puts its GPU on the NIC beside it (GPUs 2 i and
//     2 i + 1 of a host share a PCIe switch), and each of the two gets half of that one. A NIC that
//     fails inside the step carries nothing: nobody moves a running connection.
//   - A dead ToR: its NICs carry nothing on a fabric of one plane. On several planes NICs lose that
//     plane's port, and the host's traffic moves to the ports that are left, over NVLink where they
//     are of another GPU: a host with 16 ports that loses one keeps 15/16, as published for Alibaba
//     HPN 7.0 (-6.25 %).
//   - A ToR's or pod's uplinks at a factor: so many of its lanes are gone, for hashing too.
#pragma once

#include <vector>

#include "sim/base/ids.h"
#include "sim/fabric/capacity_change.h"
#include "sim/fabric/fabric.h"
#include "topologies/cluster.h"

namespace herdsim {

struct LinkConditions {
  TypedVector<LinkId, Bandwidth> capacity;  // when the step begins
  std::vector<CapacityChange> changes;      // by time, then link
  std::vector<LinkId> impaired;             // below nominal at some time; ascending, each once
};

// Requires: append_cluster_faults() finds nothing wrong with the spec; every degraded rank is
// placed, every ToR, pod and plane exists. Complexity: linear in links and degraded parts for each
// instant at which a part changes.
LinkConditions link_conditions(const Fabric& fabric, const ClusterSpec& spec,
                               const TypedVector<RankId, GpuId>& placement);

// Only when the step begins.
TypedVector<LinkId, Bandwidth> link_capacities(const Fabric& fabric, const ClusterSpec& spec,
                                               const TypedVector<RankId, GpuId>& placement);

}  // namespace herdsim

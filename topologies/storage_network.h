// Storage servers beside the GPUs of any topology: over a frontend network of the hosts' own, as
// Meta and Alibaba build it, or on the topmost switches of the GPUs' network.
//
// Sources: Llama 3 (arXiv:2407.21783, section 3.3.1): Tectonic on 7,500 servers; Alibaba HPN
// (SIGCOMM 2024): storage on a frontend network of its own, without oversubscription, because flows
// of storage on the GPUs' network would make training fluctuate.
#pragma once

#include "topologies/cluster.h"

namespace herdsim {

class ClusterCheck;

// The fabric as it is where the spec has no servers.
Fabric with_storage_network(Fabric fabric, const ClusterSpec& spec);
// Adds what is known of storage to the facts of the network without it.
void add_storage_facts(const ClusterSpec& spec, TopologyFacts& facts);
void append_storage_faults(const ClusterSpec& spec, ClusterCheck& check);

}  // namespace herdsim

// What a cluster's network is made of and how much passes through it, for `herdsim topology`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fabric/fabric.h"
#include "topologies/cluster.h"

namespace herdsim {

// What stops or slows down together: one device of a kind fails, and GPUs are cut off or bandwidth
// is lost.
struct FailureDomain {
  NodeKind kind;
  int64_t count = 0;          // devices of the kind
  int64_t gpus_cut_off = 0;   // by one failure, at most
  int64_t gpus_slowed = 0;    // whose traffic it carried a part of, at most
  double bandwidth_left = 1;  // of those
};

// From a NIC upwards and the host; layers whose switches are not counted are left out, since one
// device's part in them is unknown.
std::vector<FailureDomain> failure_domains(const Fabric& fabric, const TopologyFacts& facts);

// Requires: append_cluster_faults() finds nothing wrong with the spec.
std::string topology_table(const ClusterSpec& spec);
std::string topology_json(const ClusterSpec& spec);

// The network as a Graphviz graph with one edge a bundle of cables, labelled by lanes and rate.
// Requires: at most kGraphvizGpus GPUs; nobody can look at more.
inline constexpr int64_t kGraphvizGpus = 256;
std::string topology_graphviz(const ClusterSpec& spec);

}  // namespace herdsim

// A cluster as the scenario describes it, and the table of topologies that can build it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/fabric/fabric.h"

namespace herdsim {

// One degraded part. Factors multiply the nominal speed; 0 is not allowed here (a dead part needs a
// recovery, not a slower step).
struct Degradation {
  int64_t gpu = -1;             // of the job, by rank; the GPU itself and its NIC
  double compute_factor = 1.0;  // 0.9: a GPU at 90 % of its speed
  double nic_factor = 1.0;      // 0.5: its NIC at half speed
};

// How ranks are laid on GPUs.
enum class PlacementKind : uint8_t {
  kTopologyOrder,  // rank r on GPU r
  kRandomHosts,    // hosts shuffled by the scenario's seed; ranks of a host stay together
};

struct ClusterSpec {
  std::string name;
  std::string topology;  // a row of the registry
  int64_t gpus = 0;      // in the whole cluster
  int64_t gpus_per_host = 8;
  int64_t gpus_per_tor = 16;  // NICs cabled to one ToR; on a rail-optimised fabric all of one rail
  int64_t gpus_per_pod = 3072;  // of all rails
  int64_t tor_uplinks = 16;     // lanes of the NIC's speed from a ToR (all its planes) to its pod
  double pod_oversubscription =
      7.0;  // pod's GPUs' bandwidth over its uplinks'; 1 is full bisection
  Bandwidth nvlink = gigabytes_per_second(450);  // a GPU, one direction
  Bandwidth nic = gigabits_per_second(400);      // a GPU, one direction, line rate
  double nic_efficiency = 0.97;                  // what transfers reach of the line rate
  Bandwidth pcie = gigabytes_per_second(64);     // GPU to NIC, one direction
  PlacementKind placement = PlacementKind::kTopologyOrder;
  int64_t queue_pairs = 16;  // a connection
  std::string routing = "e-ecmp";
  std::string nccl_version = "2.20";
  std::vector<Degradation> degraded;
};

// Closed forms of a topology, which the built graph must agree with.
struct TopologyFacts {
  int64_t gpus = 0, hosts = 0, tors = 0, pods = 0;
  int64_t pod_switches = 0, core_switches = 0;  // 0: as many as the lanes need, not counted
  int64_t nic_links = 0, tor_uplinks = 0, pod_uplinks = 0;  // lanes, one direction
  Bandwidth pod_bisection;  // between the first pod's first half of ToR groups and the rest of it,
                            // one direction
  Bandwidth cluster_bisection;  // between the first half of the pods and the others, one direction
  double oversubscription = 1;  // the worst tier's
  int64_t diameter = 0;         // links between the NICs farthest apart
};

// A row. Its functions require a spec that append_cluster_faults() finds nothing wrong with.
struct Topology {
  std::string_view name;
  std::string_view help;
  bool has_rails;  // a ToR serves one GPU of every host, instead of all GPUs of a few
  Fabric (*build)(const ClusterSpec&);
  TopologyFacts (*facts)(const ClusterSpec&);
};

// Every topology, in the order of `herdsim help topologies`.
const std::vector<Topology>& topologies();
// Null if there is none of that name.
const Topology* find_topology(std::string_view name);

// Adds a fault for every field that no topology could build, with `prefix` before the field's name
// ("cluster.").
void append_cluster_faults(const ClusterSpec& spec, std::string_view prefix, Faults& faults);

// rank -> GPU. Requires: ranks <= spec.gpus. Deterministic for a seed.
TypedVector<RankId, GpuId> place_ranks(const ClusterSpec& spec, int64_t ranks, uint64_t seed);

}  // namespace herdsim

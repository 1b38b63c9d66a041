// A cluster as the scenario describes it, and the table of topologies that can build it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/fabric/fabric.h"
#include "topologies/network_graph.h"

namespace herdsim {

// One degraded part: exactly one of gpu, tor, pod and plane. Factors multiply the nominal speed.
//
//   {.gpu = 37, .compute_factor = 0.9}              a GPU at 90 %
//   {.gpu = 37, .nic_factor = 0}                    its NIC is down: it shares its neighbour's
//   {.gpu = 37, .nic_factor = 0, .at = 1 s, .lasts = 2 s}   its link flaps inside the step
//   {.tor = 3, .uplink_factor = 0.5}                half of a ToR's uplinks
//   {.tor = 3, .down = true}                        a ToR switch is dead
//   {.plane = 1, .down = true}                      so is every ToR of that plane
struct Degradation {
  int64_t gpu = -1;             // of the job, by rank; the GPU itself and its NIC
  double compute_factor = 1.0;  // 0.9: a GPU at 90 % of its speed
  double nic_factor = 1.0;      // 0.5: its NIC at half speed; 0: down
  int64_t tor = -1;  // a ToR switch, as `herdsim topology` counts them; in a graph a switch
  int64_t pod = -1;
  int64_t plane = -1;
  double uplink_factor = 1.0;  // of the ToR's or pod's cables upwards; to other switches in a mesh
  bool down = false;           // the ToR, or every ToR of the plane
  Duration at;                 // into the step; the part is as good as new before
  Duration lasts = Duration::infinite();

  bool is_lasting() const { return at == Duration::zero() && lasts == Duration::infinite(); }
  friend bool operator==(const Degradation&, const Degradation&) = default;
};

// How ranks are laid on GPUs: rows of placements().
enum class PlacementKind : uint8_t { kTopologyOrder, kRandomHosts, kPackedPods, kRankMap };

// Storage servers and how hosts reach them; see storage_network.h.
struct StorageNetwork {
  enum class Path : uint8_t { kFrontend, kTraining };
  Path path = Path::kFrontend;
  int64_t servers = 0;  // 0: none
  Bandwidth server = gigabits_per_second(100);  // port of one, each direction
  Bandwidth host = gigabits_per_second(400);    // all frontend ports of a host
  int64_t hosts_per_switch = 32;
  double oversubscription = 1;  // of a frontend switch
  friend bool operator==(const StorageNetwork&, const StorageNetwork&) = default;
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
      7.0;                   // pod's GPUs' bandwidth over its uplinks'; 1 is full bisection
  int64_t rails = 0;         // of a fabric with rails; 0: one for each GPU of a host
  int64_t planes = 0;        // ports of a NIC, each on a ToR of its own; 0: as the topology has
  int64_t switch_ports = 0;  // of pod and core switches, of the NIC's speed; 0: not counted
  Bandwidth nvlink = gigabytes_per_second(450);  // a GPU, one direction
  Bandwidth nic = gigabits_per_second(400);      // a GPU, one direction, line rate
  double nic_efficiency = 0.97;                  // what transfers reach of the line rate
  Bandwidth pcie = gigabytes_per_second(64);     // GPU to NIC, one direction
  PlacementKind placement = PlacementKind::kTopologyOrder;
  std::vector<int64_t> unavailable_hosts;  // that no placement uses
  double unavailable_fraction = 0;         // of the hosts, drawn by the seed, beside those
  std::vector<int64_t> rank_map;           // of kRankMap: the GPU of each rank
  std::vector<int64_t> torus;              // of a torus: chips along each dimension
  bool torus_wraps = true;                 // its ends are joined
  int64_t local_lanes = 1;                 // of a dragonfly: cables between two routers of a group
  int64_t global_lanes = 1;                // and between two groups
  double detour_share =
      0.5;  // of its paths between groups that routing "ugal" takes by a third one
  NetworkGraph network;                    // of a graph
  bool in_network_reduction = false;       // switches add up all-reduces (SHARP)
  int64_t queue_pairs = 16;                // a connection
  std::string routing = "e-ecmp";          // a row of routings()
  std::string nccl_version = "2.20";
  std::string buffers = "deep";  // a row of switch_buffers()
  // What a channel may have in flight, and how long its credits take to come back, loaded. NCCL:
  // eight steps of 128 KiB between two ranks, of 512 KiB in a collective; round trips over one,
  // three and five switches.
  Bytes send_window = mebibytes(1), collective_window = mebibytes(4);
  double tor_round_trip_us = 4, pod_round_trip_us = 10, core_round_trip_us = 25;
  std::vector<Degradation> degraded;
  StorageNetwork storage;

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

// Closed forms of a topology, which the built graph must agree with.
struct TopologyFacts {
  int64_t gpus = 0, hosts = 0, tors = 0, pods = 0;
  int64_t gpus_per_pod = 0;                     // of a full one
  int64_t planes = 1;                           // ports of a NIC, each on a ToR of its own
  int64_t pod_switches = 0, core_switches = 0;  // 0: as many as the lanes need, not counted
  int64_t nic_links = 0, tor_uplinks = 0, pod_uplinks = 0;  // lanes, one direction
  int64_t frontend_ports = 0, frontend_switches = 0, frontend_uplinks = 0;  // lanes of the last
  int64_t storage_servers = 0;
  Bandwidth top_supply;         // of all NICs together into the topmost switches; of a mesh nothing
  Bandwidth storage_bandwidth;  // of all hosts together to the servers, one direction; without what disks sustain
  int64_t switch_links = 0, group_links = 0;  // lanes between the switches of a mesh, see LinkKind
  int64_t degree = 0;       // cables of the ToR with the most, of one device; of a torus, a chip
  Bandwidth pod_bisection;  // between the first pod's first half of ToR groups and the rest of it,
                            // one direction
  Bandwidth cluster_bisection;  // between the first half of the pods and the others, one direction
  double oversubscription = 1;  // the worst tier's: what can arrive from below over what leads on.
                                // Of a mesh the worst group's; of a torus and a graph what half of
                                // the GPUs can send over the bisection
  int64_t diameter = 0;         // links between the NICs farthest apart
};

class ClusterCheck;  // topologies/cluster_check.h

// A row. Its functions require a spec that append_cluster_faults() finds nothing wrong with.
struct Topology {
  std::string_view name;
  std::string_view help;
  bool has_rails = false;  // a ToR serves one rail of every host, instead of all GPUs of a few
  bool is_mesh = false;    // no switch is above all others: routes are fixed, nothing is hashed
  void (*append_faults)(const ClusterSpec&, ClusterCheck&) = nullptr;  // of the shape alone; null: none
  Fabric (*build)(const ClusterSpec&);
  TopologyFacts (*facts)(const ClusterSpec&);
};

// Of a host, on a fabric with rails.
int64_t rails_of(const ClusterSpec& spec);

// Every topology, in the order of `herdsim help topologies`.
const std::vector<Topology>& topologies();
// Null if there is none of that name.
const Topology* find_topology(std::string_view name);

// Adds a fault for every field that no topology could build, with `prefix` before the field's name
// ("cluster.").
void append_cluster_faults(const ClusterSpec& spec, std::string_view prefix, Faults& faults);

struct PlacementQuestion {
  int64_t ranks = 0;
  uint64_t seed = 1;
  int64_t ranks_per_replica = 1;  // consecutive ranks of one model replica
};

// A way to lay ranks on the hosts that are available.
struct Placement {
  PlacementKind kind;
  std::string_view name;  // as the scenario language spells it
  std::string_view help;
  std::string_view source;
};
const std::vector<Placement>& placements();

// rank -> GPU. Requires: ranks <= usable_gpus(spec). Deterministic for a seed.
TypedVector<RankId, GpuId> place_ranks(const ClusterSpec& spec, const PlacementQuestion& question);
inline TypedVector<RankId, GpuId> place_ranks(const ClusterSpec& spec, int64_t ranks,
                                              uint64_t seed) {
  return place_ranks(spec, {.ranks = ranks, .seed = seed});
}

// GPUs of the hosts that are available.
int64_t usable_gpus(const ClusterSpec& spec);

}  // namespace herdsim

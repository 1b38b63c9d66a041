// A collective as NCCL would run it: which algorithm and protocol, what it costs before contention,
// what it loads.
//
// A plan has two parts. `latency` is paid whatever else runs: launch, hops by class, protocol
// steps. The rest is one fluid transfer: `volume` bytes have to pass every crossing of the group's
// path at one common rate, at most `rate_cap` and at most a fair share of each link crossed. A ring
// moves in lockstep, so its slowest edge is its speed.
//
// Crossings: a member's NIC carries the rate once in each direction; its NVLink port carries it
// `nvlink_crossings` times (a ring over 8 GPUs a node with 8 NICs passes 7 NVLink edges a node for
// each edge between nodes). A collective inside a node has nic_crossings = 0 and the rate is that
// of the NVLink port.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/fabric/fabric.h"

namespace herdsim {

struct NcclTuning;  // sim/collectives/nccl_tuning.h

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendRecv,
};
constexpr size_t kCollectiveKinds = 6;
std::string_view collective_kind_name(CollectiveKind);

// kCollNet: switches add up (SHARP). kTorusRings: not NCCL's, see torus_collective.h. The last two
// move a rank's data to and from the store: no collectives, but flows like them.
enum class Algorithm : uint8_t {
  kRing,
  kTree,
  kNvls,
  kNvlsTree,
  kPat,
  kCollNet,
  kPairwise,
  kTorusRings,
  kToStore,
  kFromStore,
};
constexpr bool is_of_store(Algorithm algorithm) { return algorithm >= Algorithm::kToStore; }
enum class Protocol : uint8_t { kSimple, kLl, kLl128 };
std::string_view algorithm_name(Algorithm);
std::string_view protocol_name(Protocol);

// In what parts of its group a collective runs, in all of them at once: the whole group, the
// members on each host, or the rails (those that are first on their hosts, those that are second,
// and so on).
enum class GroupPart : uint8_t { kAll, kNode, kRail };

// How a group extends along a dimension of a torus: `count` chips, `stride` links apart.
struct TorusAxis {
  int64_t count = 1, stride = 1;
  bool is_ring = false;  // the last is as far from the first as any two neighbours
  friend auto operator<=>(const TorusAxis&, const TorusAxis&) = default;
};

struct TorusGroup {
  bool on_torus = false;
  bool is_box = false;  // all combinations of coordinates along the axes, which say nothing else
  std::array<TorusAxis, TorusShape::kMostDimensions> axes{};
  int64_t longest_edge = 0;  // links between two members that follow one another, at most
  friend auto operator<=>(const TorusGroup&, const TorusGroup&) = default;
};

// What a collective needs to know of its group: not who is in it, only how it lies on the machine.
struct GroupShape {
  int64_t ranks = 1;
  int64_t nodes = 1;  // hosts touched; ranks / nodes of them in each (the least, where uneven)
  // The farthest two consecutive hosts of the ring, and how many of its host-to-host edges have
  // each hop class.
  HopClass farthest = HopClass::kSameHost;
  std::array<int64_t, kHopClasses> edges{};
  TorusGroup torus;

  int64_t ranks_per_node() const { return ranks / nodes; }
  friend auto operator<=>(const GroupShape&, const GroupShape&) = default;
};

// How often a byte read crosses the disks, so that a byte written may cross them 1.67 times as
// often; their capacity counts so too.
constexpr int64_t kDiskCrossings = 100;

struct CollectivePlan {
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  int64_t channels = 0;  // one SM each
  Duration latency;
  Bytes volume;
  Bandwidth rate_cap;
  int64_t nic_crossings = 0;
  int64_t nvlink_crossings = 0;
  GroupPart part = GroupPart::kAll;  // whose links it loads
  int64_t disk_crossings = 0;        // of kToStore and kFromStore, see kDiskCrossings
  bool extrapolated = false;         // outside the sizes or group sizes that were measured

  // Without contention.
  Duration alone() const { return latency + volume / rate_cap; }
};

// `bytes` is the size nccl-tests prints: the whole result of an all-gather, the whole input of a
// reduce-scatter or all-to-all, the vector of an all-reduce or broadcast, the message of a
// send/recv. A group of one rank costs nothing: all zero.
CollectivePlan plan_collective(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                               const NcclTuning& tuning);

// With an algorithm that was asked for instead of NCCL's choice; with that choice where the
// algorithm cannot do this kind or group (applies_to() in nccl_model.h), and on a torus. What a
// user measured is of NCCL's choice and says nothing here.
CollectivePlan plan_collective(CollectiveKind kind, Bytes bytes, const GroupShape& group,
                               const NcclTuning& tuning, Algorithm asked);

}  // namespace herdsim

// The machine as an immutable graph: vertices (GPUs, NVSwitch domains, NICs, switches) and directed
// links.
//
// Parallel cables between two layers of identical switches are one link of `width` lanes: its
// capacity is the sum, its facts count the lanes. Every fabric of this project is a forest of two
// kinds of trees over the same GPUs: the NVLink tree (GPU - NVSwitch) and the network tree (GPU -
// PCIe - NIC - ToR - pod - core); a topology row builds it with FabricBuilder. Routes climb the
// network tree to the lowest common ancestor, which is what up-down routing in a folded Clos does;
// how well hashing spreads flows over the lanes is a factor of the link, not of the route.
//
// Where no switch is above all others (torus, dragonfly, a graph of the user's) there are several
// network trees, whose tops are joined by links of a *mesh*: a route climbs to the top, follows
// MeshRoutes to the other top and descends. On a torus the NIC of a chip is its router and a tree
// of its own.
//
// Memory: 16 bytes a node, 1 a link; 1,048,576 GPUs take 43 MB.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/fabric/mesh_routes.h"
#include "sim/fabric/storage_part.h"
#include "sim/fabric/torus_shape.h"

namespace herdsim {

enum class NodeKind : uint8_t {
  kGpu,
  kNvSwitch,
  kNic,
  kTor,
  kPod,
  kCore,
  // Of storage, see storage_part.h.
  kFrontendPort,
  kFrontendSwitch,
  kFrontendCore,
  kStorageServer,
  kDisks,
};
constexpr size_t kNodeKinds = 11;
// Two join the tops of trees: inside a group of them (a torus is one), between two groups. The last
// four are of storage: of a host's port, of a frontend switch upwards, of the servers' ports, and
// what their disks serve.
enum class LinkKind : uint8_t {
  kNvLink,
  kPcie,
  kNicToTor,
  kTorToPod,
  kPodToCore,
  kSwitchToSwitch,
  kGroupToGroup,
  kFrontendPort,
  kFrontendUplink,
  kStorageServer,
  kDisks,
};
constexpr size_t kLinkKinds = 11;
constexpr bool is_mesh_link(LinkKind kind) {
  return kind == LinkKind::kSwitchToSwitch || kind == LinkKind::kGroupToGroup;
}

std::string_view node_kind_name(NodeKind);
std::string_view link_kind_name(LinkKind);

// How far apart two GPUs are: the class that a transfer's latency depends on.
enum class HopClass : uint8_t { kSameGpu, kSameHost, kSameTor, kSamePod, kCrossPod };
constexpr size_t kHopClasses = 5;
std::string_view hop_class_name(HopClass);

struct Link {
  NodeId from, to;
  Bandwidth capacity;  // of all lanes together, one direction
  LinkKind kind = LinkKind::kNvLink;
  uint32_t width = 1;  // lanes
};

// A vertex may stand for `count` identical devices side by side (all cluster switches of a pod).
struct Node {
  NodeKind kind = NodeKind::kGpu;
  uint32_t count = 1;
  NodeId parent;  // in the network tree; itself at a top and at an NVSwitch
  LinkId up;      // to the parent; meaningless at a top
  LinkId down() const { return LinkId(up.index() + 1); }  // from it
};

// Both directions of a link: the even number from a to b, the odd one after it back.
struct Cable {
  NodeId a, b;
  Bandwidth capacity;
  uint32_t width = 1;
  LinkKind kind = LinkKind::kNvLink;
};

// Cables alike, each of the child after that of the cable before, to its parent or NVSwitch.
struct CableRun {
  size_t first = 0;  // number of its first cable
  NodeId child;      // of that
  Bandwidth capacity;
  uint32_t width = 1;
  LinkKind kind = LinkKind::kNvLink;
};

class Fabric;

// The links of a fabric, made from runs of cables when they are looked at: a million GPUs have six
// million links and a handful of runs. Must not outlive the fabric.
// Complexity: of a look-up, logarithmic in the runs.
class LinkList {
 public:
  explicit LinkList(const Fabric& fabric) : fabric_(&fabric) {}

  size_t size() const;
  Link operator[](LinkId id) const;

  class Iterator;
  Iterator begin() const;
  Iterator end() const;

 private:
  Cable cable(size_t number) const;
  const Fabric* fabric_;
};

class LinkList::Iterator {
 public:
  Iterator(LinkList list, size_t at) : list_(list), at_(at) {}
  Link operator*() const { return list_[LinkId(at_)]; }
  Iterator& operator++() {
    ++at_;
    return *this;
  }
  friend bool operator!=(const Iterator& x, const Iterator& y) { return x.at_ != y.at_; }

 private:
  LinkList list_;
  size_t at_;
};

inline LinkList::Iterator LinkList::begin() const { return {*this, 0}; }
inline LinkList::Iterator LinkList::end() const { return {*this, size()}; }

class Fabric {
 public:
  size_t gpus() const { return gpus_; }
  size_t gpus_per_host() const { return gpus_per_host_; }
  size_t hosts() const { return gpus_ / gpus_per_host_; }

  // Gpus are nodes 0 .. gpus()-1 in topology order: host by host, rack by rack, pod by pod.
  NodeId node_of(GpuId gpu) const { return NodeId(gpu.index()); }
  HostId host_of(GpuId gpu) const { return HostId(gpu.index() / gpus_per_host_); }
  NodeId nic_of(GpuId gpu) const { return nodes_[node_of(gpu)].parent; }
  // On a torus the NIC itself.
  NodeId tor_of(GpuId gpu) const { return nodes_[nic_of(gpu)].parent; }

  const TypedVector<NodeId, Node>& nodes() const { return nodes_; }
  LinkList links() const { return LinkList(*this); }
  // Of the trees and NVLink, by number: a handful, however many cables.
  std::span<const CableRun> cable_runs() const { return runs_; }
  size_t tree_cables() const { return tree_cables_; }

  // The NVLink port of a GPU, out to the NVSwitch and in from it.
  LinkId nvlink_out(GpuId gpu) const { return LinkId(2 * gpu.index()); }
  LinkId nvlink_in(GpuId gpu) const { return LinkId(2 * gpu.index() + 1); }

  // Null where one network tree reaches every GPU.
  const MeshRoutes* mesh() const { return mesh_.get(); }
  // GPU i is the chip of that index.
  const std::optional<TorusShape>& torus() const { return torus_; }

  // The storage servers and the way to them, where there are any.
  const std::optional<StoragePart>& storage() const { return storage_; }
  // Appends the links between a GPU and the disks, these included. Requires: there is storage.
  void append_store_route(GpuId gpu, StoreAccess access, std::vector<LinkId>& route) const;

  // In a mesh ToRs of one group are in one pod.
  HopClass hop_class(GpuId a, GpuId b) const;
  // Appends the links from a to b: out of a's NVLink port and into b's inside a host; otherwise
  // from a over PCIe to its NIC, up the network tree to the lowest common ancestor, and down the
  // same way to b. Requires: a != b.
  void append_route(GpuId a, GpuId b, std::vector<LinkId>& route) const;
  // Its part from a's ToR to b's, nothing under one ToR.
  void append_route_above_tors(GpuId a, GpuId b, std::vector<LinkId>& route) const;
  // Whether the link can ever be the bottleneck of flows that also cross the links around it: false
  // for an uplink (or the downlink beside it) at least as wide as all that can arrive from below,
  // and for PCIe at least as wide as the NIC. Solvers leave these out. Holds for any capacities in
  // which NICs only got slower (a degraded NIC).
  bool can_bind(LinkId link) const { return can_bind_[link] != 0; }
  // Tells solvers to look at links that carry less than their line rate in this run. The others
  // stay as they are: what arrives at them can only become less.
  void let_bind(std::span<const LinkId> links) {
    for (const LinkId link : links) can_bind_[link] = 1;
  }

 private:
  friend class FabricBuilder;
  friend class StorageBuilder;
  friend class LinkList;
  void append_route_between(NodeId from, NodeId to, GpuId destination,
                            std::vector<LinkId>& route) const;

  size_t gpus_ = 0;
  size_t gpus_per_host_ = 1;
  TypedVector<NodeId, Node> nodes_;
  std::vector<CableRun> runs_;  // of trees and NVLink
  size_t tree_cables_ = 0;
  std::vector<Cable> mesh_cables_;      // numbered after those
  std::vector<CableRun> storage_runs_;  // numbered after these
  size_t storage_cables_ = 0;
  TypedVector<LinkId, uint8_t> can_bind_;
  std::shared_ptr<const MeshRoutes> mesh_;  // immutable, shared by copies of the fabric
  std::optional<TorusShape> torus_;
  std::optional<StoragePart> storage_;
};

inline size_t LinkList::size() const {
  return 2 * (fabric_->tree_cables_ + fabric_->mesh_cables_.size() + fabric_->storage_cables_);
}

inline Cable LinkList::cable(size_t number) const {
  const size_t of_trees = fabric_->tree_cables_;
  const size_t before_storage = of_trees + fabric_->mesh_cables_.size();
  if (number >= of_trees && number < before_storage)
    return fabric_->mesh_cables_[number - of_trees];
  const std::vector<CableRun>& runs = number < of_trees ? fabric_->runs_ : fabric_->storage_runs_;
  const auto after =
      std::upper_bound(runs.begin(), runs.end(), number,
                       [](size_t wanted, const CableRun& run) { return wanted < run.first; });
  const CableRun& run = *(after - 1);
  const NodeId child(run.child.index() + number - run.first);
  const NodeId parent = run.kind == LinkKind::kNvLink
                            ? NodeId(fabric_->gpus_ + child.index() / fabric_->gpus_per_host_)
                            : fabric_->nodes_[child].parent;
  return {child, parent, run.capacity, run.width, run.kind};
}

inline Link LinkList::operator[](LinkId id) const {
  const Cable both = cable(id.index() / 2);
  const bool out = id.index() % 2 == 0;
  return {.from = out ? both.a : both.b,
          .to = out ? both.b : both.a,
          .capacity = both.capacity,
          .kind = both.kind,
          .width = both.width};
}

}  // namespace herdsim

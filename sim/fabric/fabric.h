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
// Memory: 24 bytes a link, 20 a node; 1,048,576 GPUs take about 200 MB and 0.2 s.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"

namespace herdsim {

enum class NodeKind : uint8_t { kGpu, kNvSwitch, kNic, kTor, kPod, kCore };
enum class LinkKind : uint8_t { kNvLink, kPcie, kNicToTor, kTorToPod, kPodToCore };

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
  NodeId parent;    // in the network tree; itself at a root and at an NVSwitch
  LinkId up, down;  // to and from the parent; meaningless at a root
};

class Fabric {
 public:
  size_t gpus() const { return gpus_; }
  size_t gpus_per_host() const { return gpus_per_host_; }
  size_t hosts() const { return gpus_ / gpus_per_host_; }

  // Gpus are nodes 0 .. gpus()-1 in topology order: host by host, rack by rack, pod by pod.
  NodeId node_of(GpuId gpu) const { return NodeId(gpu.index()); }
  HostId host_of(GpuId gpu) const { return HostId(gpu.index() / gpus_per_host_); }
  NodeId nic_of(GpuId gpu) const { return nodes_[node_of(gpu)].parent; }
  NodeId tor_of(GpuId gpu) const { return nodes_[nic_of(gpu)].parent; }

  const TypedVector<NodeId, Node>& nodes() const { return nodes_; }
  const TypedVector<LinkId, Link>& links() const { return links_; }

  // The NVLink port of a GPU, out to the NVSwitch and in from it.
  LinkId nvlink_out(GpuId gpu) const { return LinkId(first_nvlink_ + 2 * gpu.index()); }
  LinkId nvlink_in(GpuId gpu) const { return LinkId(first_nvlink_ + 2 * gpu.index() + 1); }

  HopClass hop_class(GpuId a, GpuId b) const;
  // Appends the links from a to b: out of a's NVLink port and into b's inside a host; otherwise
  // from a over PCIe to its NIC, up the network tree to the lowest common ancestor, and down the
  // same way to b. Requires: a != b.
  void append_route(GpuId a, GpuId b, std::vector<LinkId>& route) const;
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
  size_t gpus_ = 0;
  size_t gpus_per_host_ = 1;
  size_t first_nvlink_ = 0;
  TypedVector<NodeId, Node> nodes_;
  TypedVector<LinkId, Link> links_;
  TypedVector<LinkId, uint8_t> can_bind_;
};

}  // namespace herdsim

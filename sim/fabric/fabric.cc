#include "sim/fabric/fabric.h"

#include <array>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, kNodeKinds> kNodeKindNames = {
    "gpu",           "nvswitch",       "nic",           "tor",
    "pod",           "core",           "frontend_port", "frontend_switch",
    "frontend_core", "storage_server", "disks"};
constexpr std::array<std::string_view, kLinkKinds> kLinkKindNames = {
    "nvlink",      "pcie",     "nic-tor",     "tor-pod", "pod-core", "switch-switch",
    "group-group", "frontend", "frontend-up", "storage", "disks"};
constexpr std::array<std::string_view, kHopClasses> kHopClassNames = {
    "same gpu", "same host", "same tor", "same pod", "cross pod"};

// gpu, nic, tor, pod: the most links a route climbs before its lowest common ancestor.
constexpr size_t kMaxClimb = 4;

}  // namespace

std::string_view node_kind_name(NodeKind kind) { return kNodeKindNames[static_cast<size_t>(kind)]; }
std::string_view link_kind_name(LinkKind kind) { return kLinkKindNames[static_cast<size_t>(kind)]; }
std::string_view hop_class_name(HopClass hop) { return kHopClassNames[static_cast<size_t>(hop)]; }

HopClass Fabric::hop_class(GpuId a, GpuId b) const {
  if (a == b) return HopClass::kSameGpu;
  if (host_of(a) == host_of(b)) return HopClass::kSameHost;
  const NodeId tor_a = tor_of(a), tor_b = tor_of(b);
  if (tor_a == tor_b) return HopClass::kSameTor;
  if (mesh_) return mesh_->same_group(tor_a, tor_b) ? HopClass::kSamePod : HopClass::kCrossPod;
  return nodes_[tor_a].parent == nodes_[tor_b].parent ? HopClass::kSamePod : HopClass::kCrossPod;
}

void Fabric::append_route(GpuId a, GpuId b, std::vector<LinkId>& route) const {
  HERDSIM_DCHECK(a != b);
  if (host_of(a) == host_of(b)) {
    route.push_back(nvlink_out(a));
    route.push_back(nvlink_in(b));
    return;
  }
  append_route_between(node_of(a), node_of(b), b, route);
}

void Fabric::append_store_route(GpuId gpu, StoreAccess access, std::vector<LinkId>& route) const {
  const StoragePart& part = *storage_;
  const bool write = access == StoreAccess::kWrite;
  NodeId at = part.over_training ? node_of(gpu) : part.port_of(gpu);
  for (; nodes_[at].parent != at; at = nodes_[at].parent) {
    route.push_back(write ? nodes_[at].up : nodes_[at].down());
  }
  route.push_back(write ? nodes_[part.servers].down() : nodes_[part.servers].up);
  route.push_back(nodes_[part.disks].down());
}

void Fabric::append_route_above_tors(GpuId a, GpuId b, std::vector<LinkId>& route) const {
  append_route_between(tor_of(a), tor_of(b), b, route);
}

void Fabric::append_route_between(NodeId from, NodeId to, GpuId destination,
                                  std::vector<LinkId>& route) const {
  // Leaves are equally deep, so both sides meet, or are at their tops, after the same number of
  // steps.
  std::array<LinkId, kMaxClimb> descent;
  size_t steps = 0;
  for (; from != to && nodes_[from].parent != from; ++steps) {
    const Node& source = nodes_[from];
    const Node& target = nodes_[to];
    route.push_back(source.up);
    descent[steps] = target.down();
    from = source.parent;
    to = target.parent;
  }
  if (from != to) mesh_->append_path(from, to, destination, route);
  while (steps > 0) route.push_back(descent[--steps]);
}

}  // namespace herdsim

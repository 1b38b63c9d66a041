#include "sim/fabric/fabric_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// The layer above a kind in the network tree. Requires: kind is gpu, nic, tor or pod.
NodeKind layer_above(NodeKind kind) {
  return kind == NodeKind::kGpu ? NodeKind::kNic
                                : static_cast<NodeKind>(static_cast<uint8_t>(kind) + 1);
}

LinkKind uplink_kind(NodeKind child) {
  switch (child) {
    case NodeKind::kGpu:
      return LinkKind::kPcie;
    case NodeKind::kNic:
      return LinkKind::kNicToTor;
    case NodeKind::kTor:
      return LinkKind::kTorToPod;
    case NodeKind::kPod:
      return LinkKind::kPodToCore;
    case NodeKind::kNvSwitch:
    case NodeKind::kCore:
    case NodeKind::kFrontendPort:
    case NodeKind::kFrontendSwitch:
    case NodeKind::kFrontendCore:
    case NodeKind::kStorageServer:
    case NodeKind::kDisks:
      break;
  }
  HERDSIM_CHECK(false) << "a " << node_kind_name(child) << " has no parent in the network tree";
  return LinkKind::kNvLink;
}

}  // namespace

FabricBuilder::FabricBuilder(const Gpus& gpus) {
  HERDSIM_CHECK(gpus.gpus > 0 && gpus.gpus_per_host > 0) << gpus.gpus << " GPUs";
  HERDSIM_CHECK(gpus.gpus % gpus.gpus_per_host == 0)
      << gpus.gpus << " GPUs in hosts of " << gpus.gpus_per_host;
  fabric_.gpus_ = gpus.gpus;
  fabric_.gpus_per_host_ = gpus.gpus_per_host;
  const size_t hosts = gpus.gpus / gpus.gpus_per_host;
  // A GPU and its NIC, a switch domain a host, and a few switches.
  fabric_.nodes_.reserve(2 * gpus.gpus + 2 * hosts);
  for (size_t gpu = 0; gpu < gpus.gpus; ++gpu) add(NodeKind::kGpu);
  if (gpus.nvlink == Bandwidth()) {
    HERDSIM_CHECK(gpus.gpus_per_host == 1) << "no NVLink in hosts of " << gpus.gpus_per_host;
    return;
  }
  for (size_t host = 0; host < hosts; ++host) {
    add(NodeKind::kNvSwitch);
    for (size_t i = 0; i < gpus.gpus_per_host; ++i) {
      const NodeId gpu(host * gpus.gpus_per_host + i);
      add_tree_cable(gpu, LinkKind::kNvLink, gpus.nvlink, 1);
    }
  }
}

void FabricBuilder::reserve(size_t nodes) { fabric_.nodes_.reserve(fabric_.nodes_.size() + nodes); }

NodeId FabricBuilder::add(NodeKind kind, size_t count) {
  HERDSIM_CHECK(count > 0 && count <= std::numeric_limits<uint32_t>::max()) << count << " devices";
  const NodeId self(fabric_.nodes_.size());
  return fabric_.nodes_.push_back(
      {.kind = kind, .count = static_cast<uint32_t>(count), .parent = self});
}

void FabricBuilder::connect(NodeId child, NodeId parent, Bandwidth lane, size_t lanes) {
  HERDSIM_CHECK(child < parent && parent.index() < fabric_.nodes_.size())
      << "node " << child.index() << " under node " << parent.index();
  Node& node = fabric_.nodes_[child];
  HERDSIM_CHECK(node.parent == child) << "node " << child.index() << " is already connected";
  const LinkKind kind = uplink_kind(node.kind);
  HERDSIM_CHECK(fabric_.nodes_[parent].kind == layer_above(node.kind))
      << node_kind_name(node.kind) << " under " << node_kind_name(fabric_.nodes_[parent].kind);
  node.parent = parent;
  node.up = add_tree_cable(child, kind, lane, lanes);
}

LinkId FabricBuilder::join(NodeId a, NodeId b, LinkKind kind, Bandwidth lane, size_t lanes) {
  HERDSIM_CHECK(a != b && is_mesh_link(kind)) << link_kind_name(kind) << " of node " << a.index();
  check_cable(kind, lane, lanes);
  fabric_.mesh_cables_.push_back({.a = a,
                                  .b = b,
                                  .capacity = lane * static_cast<int64_t>(lanes),
                                  .width = static_cast<uint32_t>(lanes),
                                  .kind = kind});
  return LinkId(2 * (fabric_.tree_cables_ + fabric_.mesh_cables_.size() - 1));
}

void FabricBuilder::set_mesh(std::shared_ptr<const MeshRoutes> routes,
                             std::optional<TorusShape> torus) {
  fabric_.mesh_ = std::move(routes);
  fabric_.torus_ = torus;
}

void FabricBuilder::check_cable(LinkKind kind, Bandwidth lane, size_t lanes) {
  HERDSIM_CHECK(lane > Bandwidth() && lanes > 0 && lanes <= std::numeric_limits<uint32_t>::max())
      << link_kind_name(kind) << " of " << lanes << " lanes of " << lane.gigabytes_per_second()
      << " GB/s";
}

LinkId FabricBuilder::add_tree_cable(NodeId child, LinkKind kind, Bandwidth lane, size_t lanes) {
  check_cable(kind, lane, lanes);
  HERDSIM_CHECK(fabric_.mesh_cables_.empty()) << "trees come before what joins their tops";
  const CableRun run{.first = fabric_.tree_cables_++,
                     .child = child,
                     .capacity = lane * static_cast<int64_t>(lanes),
                     .width = static_cast<uint32_t>(lanes),
                     .kind = kind};
  std::vector<CableRun>& runs = fabric_.runs_;
  const bool continues = !runs.empty() && runs.back().kind == kind &&
                         runs.back().capacity == run.capacity && runs.back().width == run.width &&
                         child.index() - runs.back().child.index() == run.first - runs.back().first;
  if (!continues) runs.push_back(run);
  return LinkId(2 * run.first);
}

// A link binds if less fits through it than its subtree can offer. Children have lower ids than
// their parents, so one pass upwards suffices. A NIC always binds: it may be degraded later, which
// would free the PCIe link below it.
void FabricBuilder::mark_binding_links() {
  const auto& nodes = fabric_.nodes_;
  const LinkList links = fabric_.links();
  fabric_.can_bind_.assign(links.size(), 1);
  TypedVector<NodeId, Bandwidth> offered(nodes.size());
  for (size_t index = 0; index < nodes.size(); ++index) {
    const NodeId id(index);
    const Node& node = nodes[id];
    if (node.parent == id) continue;
    const Bandwidth capacity = links[node.up].capacity;
    bool binds = true;
    if (node.kind == NodeKind::kGpu) {
      binds = capacity < links[nodes[node.parent].up].capacity;
      offered[id] = capacity;
    } else if (node.kind != NodeKind::kNic) {
      binds = capacity < offered[id];
    }
    offered[node.parent] = offered[node.parent] + std::min(capacity, offered[id]);
    fabric_.can_bind_[node.up] = fabric_.can_bind_[node.down()] = binds ? 1 : 0;
  }
}

void FabricBuilder::check_invariants() const {
  const auto& nodes = fabric_.nodes_;
  size_t roots = 0;
  for (size_t index = 0; index < nodes.size(); ++index) {
    const NodeId id(index);
    const Node& node = nodes[id];
    if (node.kind == NodeKind::kNvSwitch) continue;
    if (node.parent == id) {
      ++roots;
      HERDSIM_CHECK(node.kind >= (fabric_.mesh_ ? NodeKind::kNic : NodeKind::kTor))
          << node_kind_name(node.kind) << " " << index << " is connected to nothing";
      continue;
    }
    const Link up = fabric_.links()[node.up];
    HERDSIM_CHECK(up.from == id && up.to == node.parent)
        << "the cable of node " << index << " does not join it to its parent";
  }
  HERDSIM_CHECK(roots == 1 || fabric_.mesh_) << roots << " network trees instead of one";
}

Fabric FabricBuilder::build() && {
  check_invariants();
  mark_binding_links();
  return std::move(fabric_);
}

}  // namespace herdsim

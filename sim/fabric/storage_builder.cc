#include "sim/fabric/storage_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace herdsim {

class StorageBuilder {
 public:
  StorageBuilder(Fabric fabric, const StorageShape& shape)
      : fabric_(std::move(fabric)), shape_(shape) {}

  Fabric build() && {
    StoragePart part{.first_node = NodeId(fabric_.nodes_.size()),
                     .over_training = shape_.over_training,
                     .gpus_per_port = shape_.gpus_per_port,
                     .servers = {},
                     .disks = {}};
    std::vector<NodeId> ports;
    const size_t hosts = shape_.over_training ? 0 : fabric_.gpus() / shape_.gpus_per_port;
    for (size_t host = 0; host < hosts; ++host) ports.push_back(add(NodeKind::kFrontendPort));
    part.disks = add(NodeKind::kDisks, shape_.servers);
    part.servers = add(NodeKind::kStorageServer, shape_.servers);
    const NodeId root = shape_.over_training ? top_of_training() : frontend_over(ports);
    connect(part.servers, root, LinkKind::kStorageServer, shape_.server, shape_.servers);
    connect(part.disks, part.servers, LinkKind::kDisks, shape_.server, shape_.servers);
    fabric_.storage_ = part;
    return std::move(fabric_);
  }

 private:
  NodeId add(NodeKind kind, size_t count = 1) {
    const NodeId self(fabric_.nodes_.size());
    return fabric_.nodes_.push_back(
        {.kind = kind, .count = static_cast<uint32_t>(count), .parent = self});
  }

  void connect(NodeId child, NodeId parent, LinkKind kind, Bandwidth lane, size_t lanes,
               bool binds = true) {
    HERDSIM_CHECK(lane > Bandwidth() && lanes > 0)
        << link_kind_name(kind) << " of " << lanes << " lanes";
    const CableRun run{.first = fabric_.links().size() / 2,
                       .child = child,
                       .capacity = lane * static_cast<int64_t>(lanes),
                       .width = static_cast<uint32_t>(lanes),
                       .kind = kind};
    std::vector<CableRun>& runs = fabric_.storage_runs_;
    const bool continues =
        !runs.empty() && runs.back().kind == kind && runs.back().capacity == run.capacity &&
        runs.back().width == run.width &&
        child.index() - runs.back().child.index() == run.first - runs.back().first;
    if (!continues) runs.push_back(run);
    ++fabric_.storage_cables_;
    fabric_.nodes_[child].parent = parent;
    fabric_.nodes_[child].up = LinkId(2 * run.first);
    for (int direction = 0; direction < 2; ++direction) fabric_.can_bind_.push_back(binds ? 1 : 0);
  }

  NodeId top_of_training() const {
    HERDSIM_CHECK(!fabric_.mesh_) << "no switch is above all others";
    NodeId at = fabric_.tor_of(GpuId(0));
    while (fabric_.nodes_[at].parent != at) at = fabric_.nodes_[at].parent;
    return at;
  }

  // One switch needs nothing above it.
  NodeId frontend_over(const std::vector<NodeId>& ports) {
    std::vector<NodeId> switches;
    const size_t of_switch = shape_.hosts_per_switch;
    for (size_t first = 0; first < ports.size(); first += of_switch)
      switches.push_back(add(NodeKind::kFrontendSwitch));
    for (size_t host = 0; host < ports.size(); ++host) {
      connect(ports[host], switches[host / of_switch], LinkKind::kFrontendPort, shape_.port, 1);
    }
    if (switches.size() == 1) return switches.front();
    const NodeId core = add(NodeKind::kFrontendCore);
    for (size_t s = 0; s < switches.size(); ++s) {
      const size_t below = std::min(of_switch, ports.size() - s * of_switch);
      const size_t lanes = frontend_uplinks(shape_, below);
      connect(switches[s], core, LinkKind::kFrontendUplink, shape_.port, lanes, lanes < below);
    }
    return core;
  }

  Fabric fabric_;
  const StorageShape& shape_;
};

size_t frontend_uplinks(const StorageShape& shape, size_t hosts) {
  return static_cast<size_t>(
      std::max(1.0, std::round(static_cast<double>(hosts) / shape.oversubscription)));
}

Fabric with_storage(Fabric fabric, const StorageShape& shape) {
  return StorageBuilder(std::move(fabric), shape).build();
}

}  // namespace herdsim

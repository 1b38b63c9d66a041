// The only way to make a Fabric: add nodes bottom up, cable each to its parent once, build.
//
//   FabricBuilder builder({.gpus = 16, .gpus_per_host = 8, .nvlink = gigabytes_per_second(450)});
//   const NodeId tor = ...;                      // after the NICs: a parent has a higher id than
//   its children builder.connect(nic, tor, gigabits_per_second(400));        // both directions,
//   one lane builder.connect(tor, pod, gigabits_per_second(400), 16);    // one link of 16 lanes
//   each way Fabric fabric = std::move(builder).build();
//
// The constructor makes the GPUs and one NVSwitch domain a host; everything above is the
// topology's. A violated rule is a mistake of a topology row, hence a failed check: what a user can
// get wrong is caught before (cluster_faults()).
#pragma once

#include <memory>
#include <optional>

#include "sim/fabric/fabric.h"

namespace herdsim {

class FabricBuilder {
 public:
  struct Gpus {
    size_t gpus = 0;           // a multiple of gpus_per_host
    size_t gpus_per_host = 1;  // an NVLink domain
    Bandwidth nvlink;          // a GPU's port, one direction; none where hosts are single GPUs
  };
  explicit FabricBuilder(const Gpus& gpus);

  // Room for nodes to come, so that a large fabric is never copied while it grows.
  void reserve(size_t nodes);
  // Adds a vertex that stands for `count` devices side by side.
  NodeId add(NodeKind kind, size_t count = 1);
  // Cables a node to its parent: one link up, one down, each `lanes` times `lane` wide.
  // Requires: parent one layer above (gpu, nic, tor, pod, core) and added later; child has no
  // parent yet.
  void connect(NodeId child, NodeId parent, Bandwidth lane, size_t lanes = 1);
  // Joins the tops of two trees: a link each way, the first of which is returned; the other is the
  // next one. Requires: neither node gets a parent; all trees are connected.
  LinkId join(NodeId a, NodeId b, LinkKind kind, Bandwidth lane, size_t lanes = 1);
  // How routes pass what was joined. Requires: paths that use only those links.
  void set_mesh(std::shared_ptr<const MeshRoutes> routes, std::optional<TorusShape> torus = {});
  // Ensures: one network tree reaches every GPU, or several joined ones with routes; every link has
  // a capacity and its opposite; ids are consistent.
  Fabric build() &&;

 private:
  static void check_cable(LinkKind kind, Bandwidth lane, size_t lanes);
  // Returns the link away from the child.
  LinkId add_tree_cable(NodeId child, LinkKind kind, Bandwidth lane, size_t lanes);
  void mark_binding_links();
  void check_invariants() const;

  Fabric fabric_;
};

}  // namespace herdsim

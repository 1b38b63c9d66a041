#include "topologies/torus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "sim/fabric/fabric_builder.h"
#include "topologies/cluster_check.h"

namespace herdsim {
namespace {

// The cable from each chip to the next one along a dimension; the link after it is the way back.
using Cables = std::array<std::vector<LinkId>, TorusShape::kMostDimensions>;

class DimensionOrder : public MeshRoutes {
 public:
  DimensionOrder(const TorusShape& shape, NodeId first, Cables cables)
      : shape_(shape), first_(first), cables_(std::move(cables)) {}

  void append_path(NodeId from, NodeId to, GpuId, std::vector<LinkId>& path) const override {
    TorusShape::Coordinates here = shape_.at(chip_of(from));
    const TorusShape::Coordinates there = shape_.at(chip_of(to));
    for (size_t d = 0; d < here.size(); ++d) {
      const int64_t extent = shape_.extents[d];
      for (int64_t left = shape_.steps(d, here[d], there[d]); left != 0;) {
        const bool forward = left > 0;
        left += forward ? -1 : 1;
        const int64_t next = (here[d] + (forward ? 1 : extent - 1)) % extent;
        if (!forward) here[d] = next;
        const LinkId cable = cables_[d][static_cast<size_t>(shape_.chip(here))];
        path.push_back(forward ? cable : LinkId(cable.index() + 1));
        here[d] = next;
      }
    }
  }
  bool same_group(NodeId, NodeId) const override { return true; }

 private:
  int64_t chip_of(NodeId router) const {
    return static_cast<int64_t>(router.index() - first_.index());
  }

  const TorusShape shape_;
  const NodeId first_;  // the routers follow one another
  const Cables cables_;
};

// The dimension that is cut for the bisection: the fewest cables for halves.
size_t longest(const TorusShape& shape) {
  const auto& n = shape.extents;
  return static_cast<size_t>(std::max_element(n.begin(), n.end()) - n.begin());
}

}  // namespace

TorusShape torus_shape(const ClusterSpec& spec) {
  TorusShape shape{.dimensions = static_cast<int64_t>(spec.torus.size()),
                   .wraps = spec.torus_wraps};
  for (size_t d = 0; d < spec.torus.size(); ++d) shape.extents[d] = spec.torus[d];
  return shape;
}

Bandwidth torus_link(const ClusterSpec& spec) {
  return spec.nic / (2 * static_cast<int64_t>(spec.torus.size()));
}

Fabric build_torus(const ClusterSpec& spec) {
  const TorusShape shape = torus_shape(spec);
  const auto chips = static_cast<size_t>(shape.chips());
  FabricBuilder builder({.gpus = chips, .gpus_per_host = 1, .nvlink = Bandwidth()});
  builder.reserve(chips);
  std::vector<NodeId> routers;
  for (size_t chip = 0; chip < chips; ++chip) {
    routers.push_back(builder.add(NodeKind::kNic));
    builder.connect(NodeId(chip), routers.back(), spec.nic);  // inside the chip
  }
  Cables cables;
  for (size_t d = 0; d < spec.torus.size(); ++d) {
    cables[d].resize(chips);
    for (size_t chip = 0; chip < chips; ++chip) {
      TorusShape::Coordinates next = shape.at(static_cast<int64_t>(chip));
      if (++next[d] == shape.extents[d]) {
        if (!shape.is_ring(d)) continue;
        next[d] = 0;
      }
      cables[d][chip] = builder.join(routers[chip], routers[static_cast<size_t>(shape.chip(next))],
                                     LinkKind::kSwitchToSwitch, torus_link(spec));
    }
  }
  builder.set_mesh(std::make_shared<DimensionOrder>(shape, routers.front(), std::move(cables)),
                   shape);
  return std::move(builder).build();
}

TopologyFacts torus_facts(const ClusterSpec& spec) {
  const TorusShape shape = torus_shape(spec);
  TopologyFacts facts;
  facts.gpus = shape.chips();
  facts.hosts = facts.gpus / spec.gpus_per_host;
  facts.pods = 1;
  facts.gpus_per_pod = facts.gpus;
  for (size_t d = 0; d < spec.torus.size(); ++d) {
    const int64_t n = shape.extents[d];
    facts.switch_links += shape.cables(d);
    facts.degree += shape.is_ring(d) || n > 2 ? 2 : n - 1;
    facts.diameter += shape.is_ring(d) ? n / 2 : n - 1;
  }
  const size_t cut = longest(shape);
  const int64_t n = shape.extents[cut];
  const int64_t cables = n == 1 ? 0 : facts.gpus / n * (shape.is_ring(cut) ? 2 : 1);
  facts.cluster_bisection = torus_link(spec) * cables;
  facts.pod_bisection = facts.cluster_bisection;
  const int64_t half = facts.gpus / n * (n / 2);
  facts.oversubscription =
      half == 0 ? 1
                : static_cast<double>((spec.nic * half).bytes_per_second()) /
                      static_cast<double>(facts.cluster_bisection.bytes_per_second());
  return facts;
}

void append_torus_faults(const ClusterSpec& spec, ClusterCheck& check) {
  constexpr int64_t kMostExtent = 1 << 12;
  if (spec.torus.empty() || spec.torus.size() > TorusShape::kMostDimensions) {
    check.add("torus", fmt::format("{} dimensions", spec.torus.size()),
              "one to three extents, such as torus: [16, 16, 16]");
    return;
  }
  bool sound = true;
  for (size_t d = 0; d < spec.torus.size(); ++d) {
    if (spec.torus[d] >= 1 && spec.torus[d] <= kMostExtent) continue;
    check.add(fmt::format("torus[{}]", d), fmt::format("extent {}", spec.torus[d]),
              fmt::format("1 to {}", kMostExtent));
    sound = false;
  }
  if (sound && torus_shape(spec).chips() != spec.gpus) {
    check.add("torus", fmt::format("the extents make {} GPUs", torus_shape(spec).chips()),
              fmt::format("{}, as gpus says", spec.gpus));
  }
  for (size_t i = 0; i < spec.degraded.size(); ++i) {
    const Degradation& part = spec.degraded[i];
    if (part.tor < 0 && part.pod < 0 && part.plane < 0) continue;
    check.add(fmt::format("degraded[{}]", i), "a torus has no ToRs, pods or planes",
              "gpu, whose nic_factor is that of all its cables");
  }
  if (spec.in_network_reduction) {
    check.add("in_network_reduction", "a torus has no switches that could add", "false");
  }
}

}  // namespace herdsim

#include "topologies/dragonfly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "sim/fabric/fabric_builder.h"
#include "topologies/cluster_check.h"
#include "topologies/routing.h"

namespace herdsim {
namespace {

struct Shape {
  explicit Shape(const ClusterSpec& spec)
      : terminals(spec.gpus_per_tor),
        routers(spec.gpus_per_pod / spec.gpus_per_tor),
        groups(spec.gpus / spec.gpus_per_pod),
        local(spec.local_lanes),
        global(spec.global_lanes),
        detours(groups > 2 ? detour_share(spec) : 0) {}

  // The router of `group` that cable `lane` to group `other` is plugged into.
  int64_t gateway(int64_t group, int64_t other, int64_t lane) const {
    const int64_t place = (other - group - 1 + groups) % groups;
    return (place * global + lane) % routers;
  }

  // Groups to go by; of the destinations of a group as many as the share says, evenly among them.
  // Negative where a destination is reached minimally.
  int64_t detour_of(GpuId destination) const {
    const auto place = static_cast<int64_t>(destination.index()) % (terminals * routers);
    const auto before = [&](int64_t gpus) {
      return static_cast<int64_t>(std::floor(detours * static_cast<double>(gpus)));
    };
    return before(place + 1) > before(place) ? before(place) : -1;
  }

  int64_t terminals, routers, groups, local, global;
  double detours;
};

class DragonflyRoutes : public MeshRoutes {
 public:
  // The links from router a to router b of a group at `locals[a * routers + b]` of the group, and
  // of cable `lane` from group g to h at `globals[(g * groups + h) * lanes + lane]`.
  DragonflyRoutes(const Shape& shape, NodeId first, std::vector<LinkId> locals,
                  std::vector<LinkId> globals)
      : s_(shape), first_(first), locals_(std::move(locals)), globals_(std::move(globals)) {}

  void append_path(NodeId from, NodeId to, GpuId destination,
                   std::vector<LinkId>& path) const override {
    const int64_t source = number(from), target = number(to);
    const int64_t group = source / s_.routers, other = target / s_.routers;
    if (group == other) return append_local(source, target, path);
    const int64_t detour = s_.detour_of(destination);
    if (detour < 0) {
      const int64_t there = append_crossing(
          source, other, static_cast<int64_t>(destination.index()) % s_.global, path);
      return append_local(there, target, path);
    }
    // The groups after this one, without the other.
    const int64_t ways = s_.groups - 2;
    const int64_t to_other = (other - group + s_.groups) % s_.groups;
    const int64_t step = 1 + detour % ways;
    const int64_t third = (group + step + (step >= to_other ? 1 : 0)) % s_.groups;
    const int64_t lane = detour / ways % s_.global;
    const int64_t halfway = append_crossing(source, third, lane, path);
    append_local(append_crossing(halfway, other, lane, path), target, path);
  }
  bool same_group(NodeId a, NodeId b) const override {
    return number(a) / s_.routers == number(b) / s_.routers;
  }

 private:
  int64_t number(NodeId router) const {
    return static_cast<int64_t>(router.index() - first_.index());
  }
  // From a router to the other end of a cable to that group, which is returned.
  int64_t append_crossing(int64_t from, int64_t to_group, int64_t lane,
                          std::vector<LinkId>& path) const {
    const int64_t group = from / s_.routers;
    append_local(from, group * s_.routers + s_.gateway(group, to_group, lane), path);
    path.push_back(
        globals_[static_cast<size_t>((group * s_.groups + to_group) * s_.global + lane)]);
    return to_group * s_.routers + s_.gateway(to_group, group, lane);
  }
  void append_local(int64_t from, int64_t to, std::vector<LinkId>& path) const {
    if (from == to) return;
    path.push_back(locals_[static_cast<size_t>(from * s_.routers + to % s_.routers)]);
  }

  const Shape s_;
  const NodeId first_;  // the routers follow one another, group by group
  const std::vector<LinkId> locals_, globals_;
};

LinkId opposite(LinkId link) { return LinkId(link.index() + 1); }

// The links from each router to each other one of its group.
std::vector<LinkId> join_groups_inside(const Shape& s, Bandwidth lane,
                                       const std::vector<NodeId>& routers, FabricBuilder& builder) {
  std::vector<LinkId> locals(static_cast<size_t>(s.groups * s.routers * s.routers));
  for (int64_t group = 0; group < s.groups; ++group) {
    const int64_t first = group * s.routers;
    for (int64_t a = 0; a < s.routers; ++a) {
      for (int64_t b = a + 1; b < s.routers; ++b) {
        const LinkId link = builder.join(
            routers[static_cast<size_t>(first + a)], routers[static_cast<size_t>(first + b)],
            LinkKind::kSwitchToSwitch, lane, static_cast<size_t>(s.local));
        locals[static_cast<size_t>((first + a) * s.routers + b)] = link;
        locals[static_cast<size_t>((first + b) * s.routers + a)] = opposite(link);
      }
    }
  }
  return locals;
}

std::vector<LinkId> join_groups(const Shape& s, Bandwidth lane, const std::vector<NodeId>& routers,
                                FabricBuilder& builder) {
  std::vector<LinkId> globals(static_cast<size_t>(s.groups * s.groups * s.global));
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t h = g + 1; h < s.groups; ++h) {
      for (int64_t cable = 0; cable < s.global; ++cable) {
        const LinkId link =
            builder.join(routers[static_cast<size_t>(g * s.routers + s.gateway(g, h, cable))],
                         routers[static_cast<size_t>(h * s.routers + s.gateway(h, g, cable))],
                         LinkKind::kGroupToGroup, lane);
        globals[static_cast<size_t>((g * s.groups + h) * s.global + cable)] = link;
        globals[static_cast<size_t>((h * s.groups + g) * s.global + cable)] = opposite(link);
      }
    }
  }
  return globals;
}

// Links between the routers farthest apart.
int64_t router_diameter(const Shape& s) {
  if (s.groups == 1) return s.routers > 1 ? 1 : 0;
  if (s.routers == 1) return 1;
  // With a cable at every router to every group, one of the two local links is saved.
  return s.global < s.routers ? 3 : 2;
}

}  // namespace

Fabric build_dragonfly(const ClusterSpec& spec) {
  const Shape s(spec);
  const auto gpus = static_cast<size_t>(spec.gpus);
  FabricBuilder builder({.gpus = gpus,
                         .gpus_per_host = static_cast<size_t>(spec.gpus_per_host),
                         .nvlink = spec.nvlink});
  builder.reserve(gpus + static_cast<size_t>(s.groups * s.routers));
  std::vector<NodeId> nics, routers;
  for (size_t gpu = 0; gpu < gpus; ++gpu) {
    nics.push_back(builder.add(NodeKind::kNic));
    builder.connect(NodeId(gpu), nics.back(), spec.pcie);
  }
  for (int64_t r = 0; r < s.groups * s.routers; ++r) routers.push_back(builder.add(NodeKind::kTor));
  for (size_t gpu = 0; gpu < gpus; ++gpu) {
    builder.connect(nics[gpu], routers[gpu / static_cast<size_t>(s.terminals)], spec.nic);
  }
  std::vector<LinkId> locals = join_groups_inside(s, spec.nic, routers, builder);
  std::vector<LinkId> globals = join_groups(s, spec.nic, routers, builder);
  builder.set_mesh(
      std::make_shared<DragonflyRoutes>(s, routers.front(), std::move(locals), std::move(globals)));
  return std::move(builder).build();
}

TopologyFacts dragonfly_facts(const ClusterSpec& spec) {
  const Shape s(spec);
  TopologyFacts facts;
  facts.gpus = spec.gpus;
  facts.hosts = spec.gpus / spec.gpus_per_host;
  facts.tors = s.groups * s.routers;
  facts.pods = s.groups;
  facts.gpus_per_pod = spec.gpus_per_pod;
  facts.nic_links = spec.gpus;
  facts.switch_links = s.groups * s.routers * (s.routers - 1) / 2 * s.local;
  facts.group_links = s.groups * (s.groups - 1) / 2 * s.global;
  const int64_t outward = (s.groups - 1) * s.global;  // of a group
  facts.degree = s.terminals + (s.routers - 1) * s.local + (outward + s.routers - 1) / s.routers;
  facts.diameter = facts.hosts == 1 ? 0 : 2 + router_diameter(s);
  // What half of the routers can send, and what joins them to the others.
  const int64_t half = s.routers / 2;
  facts.pod_bisection =
      half == 0 ? spec.nic * (s.terminals / spec.gpus_per_host / 2 * spec.gpus_per_host)
                : spec.nic * std::min(half * s.terminals, half * (s.routers - half) * s.local);
  const int64_t half_groups = s.groups / 2;
  facts.cluster_bisection =
      half_groups == 0 ? facts.pod_bisection
                       : spec.nic * std::min(half_groups * spec.gpus_per_pod,
                                             half_groups * (s.groups - half_groups) * s.global);
  if (s.groups > 1) {
    facts.oversubscription =
        std::max(1.0, static_cast<double>(spec.gpus_per_pod) / static_cast<double>(outward));
  }
  return facts;
}

void append_dragonfly_faults(const ClusterSpec& spec, ClusterCheck& check) {
  check.positive("local_lanes", spec.local_lanes);
  check.positive("global_lanes", spec.global_lanes);
  if (!(spec.detour_share >= 0 && spec.detour_share <= 1))
    check.add("detour_share", fmt::format("{}", spec.detour_share), "0 to 1");
  check.multiple("gpus_per_tor", spec.gpus_per_tor, "gpus_per_host", spec.gpus_per_host);
  check.multiple("gpus_per_pod", spec.gpus_per_pod, "gpus_per_tor", spec.gpus_per_tor);
  check.multiple("gpus", spec.gpus, "gpus_per_pod", spec.gpus_per_pod);
  if (spec.gpus_per_tor <= 0 || spec.gpus_per_pod <= 0 || spec.gpus <= 0) return;
  // Cables are listed one by one, and of every router its neighbours.
  constexpr int64_t kMostCables = 1 << 22;
  const Shape s(spec);
  const bool small = s.routers <= kMostCables && s.groups <= kMostCables;
  const double locals = static_cast<double>(s.groups) * static_cast<double>(s.routers) *
                        static_cast<double>(s.routers);
  const double globals = static_cast<double>(s.groups) * static_cast<double>(s.groups) *
                         static_cast<double>(spec.global_lanes);
  if (!small || locals + globals > static_cast<double>(kMostCables)) {
    check.add("gpus_per_tor",
              fmt::format("{} groups of {} routers are too many cables", s.groups, s.routers),
              "more GPUs a router, or fewer in all");
    return;
  }
  // Else a group's own cables, not those between groups, would be what halves have in common.
  if (s.routers > 1 && spec.local_lanes > 0 &&
      (s.routers - 1) * spec.local_lanes < spec.gpus_per_tor) {
    check.add("local_lanes",
              fmt::format("{} cables of a router to its group for {} NICs",
                          (s.routers - 1) * spec.local_lanes, spec.gpus_per_tor),
              "as many cables as NICs, or more");
  }
}

}  // namespace herdsim

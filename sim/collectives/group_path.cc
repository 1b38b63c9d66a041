#include "sim/collectives/group_path.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/collectives/torus_collective.h"

namespace herdsim {
namespace {

// Members of one host, in rank order.
struct HostRun {
  HostId host;
  size_t first = 0, count = 0;
};

// The ring of hosts. Almost always the members of a host stand together and `ordered` is the
// caller's span.
struct HostRing {
  std::span<const GpuId> ordered;
  std::vector<HostRun> runs;
  std::vector<GpuId> reordered;

  std::span<const GpuId> members(size_t run) const {
    return ordered.subspan(runs[run].first, runs[run].count);
  }
  std::span<const GpuId> members_after(size_t run) const {
    return members(run + 1 == runs.size() ? 0 : run + 1);
  }
};

bool has_repeated_host(const std::vector<HostRun>& runs) {
  const auto by_host = [](const HostRun& a, const HostRun& b) { return a.host < b.host; };
  const auto not_ascending = [](const HostRun& a, const HostRun& b) { return !(a.host < b.host); };
  if (std::adjacent_find(runs.begin(), runs.end(), not_ascending) == runs.end()) return false;
  std::vector<HostRun> sorted = runs;
  std::sort(sorted.begin(), sorted.end(), by_host);
  return std::adjacent_find(sorted.begin(), sorted.end(), not_ascending) != sorted.end();
}

// Brings members of a host together, hosts in the order of their first member.
void reunite_hosts(HostRing& ring, std::span<const GpuId> members) {
  std::vector<size_t> order(ring.runs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto& runs = ring.runs;
  std::stable_sort(order.begin(), order.end(),
                   [&runs](size_t a, size_t b) { return runs[a].host < runs[b].host; });
  std::vector<size_t> first_run(runs.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool continues = i > 0 && runs[order[i]].host == runs[order[i - 1]].host;
    first_run[order[i]] = continues ? first_run[order[i - 1]] : order[i];
  }
  std::stable_sort(order.begin(), order.end(), [&first_run](size_t a, size_t b) {
    return std::pair(first_run[a], a) < std::pair(first_run[b], b);
  });
  std::vector<HostRun> merged;
  ring.reordered.reserve(members.size());
  for (const size_t run : order) {
    if (merged.empty() || merged.back().host != runs[run].host) {
      merged.push_back({.host = runs[run].host, .first = ring.reordered.size()});
    }
    merged.back().count += runs[run].count;
    const auto part = members.subspan(runs[run].first, runs[run].count);
    ring.reordered.insert(ring.reordered.end(), part.begin(), part.end());
  }
  ring.runs = std::move(merged);
  ring.ordered = ring.reordered;
}

void build_ring(const Fabric& fabric, std::span<const GpuId> members, HostRing& ring) {
  ring.ordered = members;
  for (size_t i = 0; i < members.size(); ++i) {
    const HostId host = fabric.host_of(members[i]);
    if (ring.runs.empty() || ring.runs.back().host != host) {
      ring.runs.push_back({.host = host, .first = i});
    }
    ++ring.runs.back().count;
  }
  if (ring.runs.size() > 2 && has_repeated_host(ring.runs)) reunite_hosts(ring, members);
}

bool in_one_host(const Fabric& fabric, std::span<const GpuId> members) {
  const HostId first = fabric.host_of(members.front());
  return std::all_of(members.begin(), members.end(),
                     [&](GpuId gpu) { return fabric.host_of(gpu) == first; });
}

// Whom member `index` of a host sends to on the next host: the GPU of its own number, or else of
// its own place.
GpuId rail_partner(const Fabric& fabric, GpuId gpu, size_t index, std::span<const GpuId> next) {
  const size_t rail = gpu.index() % fabric.gpus_per_host();
  const auto on_rail = [&](GpuId other) { return other.index() % fabric.gpus_per_host() == rail; };
  const GpuId same_place = next[index % next.size()];
  if (on_rail(same_place)) return same_place;
  const auto found = std::find_if(next.begin(), next.end(), on_rail);
  return found == next.end() ? same_place : *found;
}

// Counts links of a ring edge above the NICs. Neighbouring edges repeat the same few links, so
// looking back over the last ones merges nearly all of them before the sort.
void count_link(const Fabric& fabric, LinkId link, std::vector<Crossing>& upper) {
  if (!fabric.can_bind(link)) return;
  constexpr size_t kLookBack = 4;
  for (size_t back = 1; back <= std::min(kLookBack, upper.size()); ++back) {
    Crossing& recent = upper[upper.size() - back];
    if (recent.link == link) {
      ++recent.count;
      return;
    }
  }
  upper.push_back({.link = link, .count = 1});
}

void count_edge_above_tors(const Fabric& fabric, GpuId from, GpuId to,
                           std::vector<Crossing>& upper) {
  if (fabric.mesh() != nullptr) {
    std::vector<LinkId> route;
    fabric.append_route_above_tors(from, to, route);
    for (const LinkId link : route) count_link(fabric, link, upper);
    return;
  }
  NodeId source = fabric.tor_of(from), destination = fabric.tor_of(to);
  while (source != destination) {
    const Node& up_node = fabric.nodes()[source];
    const Node& down_node = fabric.nodes()[destination];
    count_link(fabric, up_node.up, upper);
    count_link(fabric, down_node.down(), upper);
    source = up_node.parent;
    destination = down_node.parent;
  }
}

// Sorts what was appended from `begin` on, if need be, and merges equal links.
void sort_and_merge(std::vector<Crossing>& crossings, size_t begin) {
  const auto first = crossings.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto by_link = [](const Crossing& a, const Crossing& b) { return a.link < b.link; };
  if (!std::is_sorted(first, crossings.end(), by_link)) {
    std::sort(first, crossings.end(), by_link);
  }
  auto last = first;
  for (auto it = first; it != crossings.end(); ++it) {
    if (it != first && it->link == last->link) {
      last->count += it->count;
    } else {
      if (it != first) ++last;
      *last = *it;
    }
  }
  if (first != crossings.end()) crossings.erase(last + 1, crossings.end());
}

void append_ports(const Fabric& fabric, std::span<const GpuId> members, const CollectivePlan& plan,
                  std::vector<Crossing>& out) {
  // A large group grows the vector once; doubling keeps many small ones linear.
  const size_t most = out.size() + 6 * members.size();
  if (most > out.capacity()) out.reserve(std::max(most, 2 * out.capacity()));
  if (plan.nvlink_crossings > 0) {
    for (const GpuId gpu : members) {
      out.push_back({.link = fabric.nvlink_out(gpu), .count = plan.nvlink_crossings});
      out.push_back({.link = fabric.nvlink_in(gpu), .count = plan.nvlink_crossings});
    }
  }
  if (plan.nic_crossings == 0) return;
  const auto append_both = [&](const Node& node) {
    if (!fabric.can_bind(node.up)) return;
    out.push_back({.link = node.up, .count = plan.nic_crossings});
    out.push_back({.link = node.down(), .count = plan.nic_crossings});
  };
  for (const GpuId gpu : members) append_both(fabric.nodes()[fabric.node_of(gpu)]);
  for (const GpuId gpu : members) append_both(fabric.nodes()[fabric.nic_of(gpu)]);
}

// The same over the routes of a mesh: of all pairs those that pass each link, over the partners of
// a member. Complexity: the square of the members.
void append_exchange_over_mesh(const Fabric& fabric, std::span<const GpuId> members,
                               int64_t partners, int64_t nic_crossings,
                               std::vector<Crossing>& out) {
  std::vector<Crossing> pairs;
  for (const GpuId from : members) {
    for (const GpuId to : members) {
      if (fabric.host_of(from) != fabric.host_of(to)) {
        count_edge_above_tors(fabric, from, to, pairs);
      }
    }
    sort_and_merge(pairs, 0);
  }
  for (const auto& [link, count] : pairs) {
    out.push_back({link, (count + partners - 1) / partners * nic_crossings});
  }
}

// All-reduces in the switches. Part i of the vector is that of the members with number i on their
// hosts, and goes up a tree of its own: each switch sends one sum up and one down, until it has
// all.
void append_reduction_trees(const Fabric& fabric, std::span<const GpuId> members,
                            std::vector<Crossing>& out) {
  std::vector<std::vector<NodeId>> parts(fabric.gpus_per_host());
  for (const GpuId gpu : members) {
    parts[gpu.index() % fabric.gpus_per_host()].push_back(fabric.tor_of(gpu));
  }
  std::vector<Crossing> upper;
  for (std::vector<NodeId>& below : parts) {
    for (;;) {
      std::sort(below.begin(), below.end());
      below.erase(std::unique(below.begin(), below.end()), below.end());
      if (below.size() <= 1) break;
      for (NodeId& at : below) {
        const Node& node = fabric.nodes()[at];
        count_link(fabric, node.up, upper);
        count_link(fabric, node.down(), upper);
        at = node.parent;
      }
    }
  }
  sort_and_merge(upper, 0);
  out.insert(out.end(), upper.begin(), upper.end());
}

// An exchange of all pairs: of the R - p partners beyond its host, each of the m members below a
// link has R - m beyond the link. A share of a crossing counts as a whole one.
void append_exchange_above_tors(const Fabric& fabric, std::span<const GpuId> members,
                                const CollectivePlan& plan, std::vector<Crossing>& out) {
  HostRing ring;
  build_ring(fabric, members, ring);
  const auto ranks = static_cast<int64_t>(members.size());
  const auto hosts = static_cast<int64_t>(ring.runs.size());
  const int64_t partners = std::max<int64_t>(1, ranks - ranks / hosts);
  if (fabric.mesh() != nullptr) {
    return append_exchange_over_mesh(fabric, members, partners, plan.nic_crossings, out);
  }
  std::vector<Crossing> below;
  for (const GpuId gpu : members) {
    NodeId id = fabric.tor_of(gpu);
    while (fabric.nodes()[id].parent != id) {
      count_link(fabric, fabric.nodes()[id].up, below);
      id = fabric.nodes()[id].parent;
    }
  }
  sort_and_merge(below, 0);
  for (const auto& [link, m] : below) {
    const int64_t count = (m * (ranks - m) + partners - 1) / partners * plan.nic_crossings;
    if (count == 0) continue;
    const Node& child = fabric.nodes()[fabric.links()[link].from];
    out.push_back({.link = child.up, .count = count});
    out.push_back({.link = child.down(), .count = count});
  }
}

// Members that have the same place on their hosts: place 0, place 1, and so on.
std::vector<std::vector<GpuId>> rails_of(const Fabric& fabric, std::span<const GpuId> members) {
  HostRing ring;
  build_ring(fabric, members, ring);
  std::vector<std::vector<GpuId>> rails;
  for (size_t run = 0; run < ring.runs.size(); ++run) {
    const std::span<const GpuId> on_host = ring.members(run);
    if (on_host.size() > rails.size()) rails.resize(on_host.size());
    for (size_t i = 0; i < on_host.size(); ++i) rails[i].push_back(on_host[i]);
  }
  return rails;
}

void append_store_path(const Fabric& fabric, GpuId gpu, const CollectivePlan& plan,
                       std::vector<Crossing>& out) {
  std::vector<LinkId> route;
  fabric.append_store_route(
      gpu, plan.algorithm == Algorithm::kToStore ? StoreAccess::kWrite : StoreAccess::kRead, route);
  for (const LinkId link : route) {
    if (!fabric.can_bind(link)) continue;
    const bool disks = link == route.back();
    out.push_back({.link = link, .count = disks ? plan.disk_crossings : 1});
  }
}

CollectivePlan plan_of_whole(CollectivePlan plan) {
  plan.part = GroupPart::kAll;
  return plan;
}

}  // namespace

GroupShape group_shape(const Fabric& fabric, std::span<const GpuId> members) {
  HERDSIM_DCHECK(!members.empty());
  GroupShape shape{.ranks = static_cast<int64_t>(members.size())};
  if (fabric.torus()) {
    shape.nodes = shape.ranks;
    if (shape.ranks > 1) {
      shape.farthest = HopClass::kSamePod;
      shape.torus = torus_group(*fabric.torus(), members);
    }
    return shape;
  }
  if (in_one_host(fabric, members)) return shape;
  HostRing ring;
  build_ring(fabric, members, ring);
  shape.nodes = static_cast<int64_t>(ring.runs.size());
  for (size_t run = 0; run < ring.runs.size(); ++run) {
    const GpuId from = ring.members(run).front();
    const HopClass hop =
        fabric.hop_class(from, rail_partner(fabric, from, 0, ring.members_after(run)));
    ++shape.edges[static_cast<size_t>(hop)];
    shape.farthest = std::max(shape.farthest, hop);
  }
  return shape;
}

void append_group_path(const Fabric& fabric, std::span<const GpuId> members,
                       const CollectivePlan& plan, std::vector<Crossing>& out) {
  const size_t begin = out.size();
  if (is_of_store(plan.algorithm)) {
    for (const GpuId gpu : members) append_store_path(fabric, gpu, plan, out);
    return sort_and_merge(out, begin);
  }
  if (fabric.torus()) {
    append_torus_path(fabric, members, plan, out);
    return;
  }
  if (plan.part == GroupPart::kRail) {
    for (const std::vector<GpuId>& rail : rails_of(fabric, members)) {
      if (rail.size() > 1) append_group_path(fabric, rail, plan_of_whole(plan), out);
    }
    return sort_and_merge(out, begin);
  }
  append_ports(fabric, members, plan, out);
  if (plan.algorithm == Algorithm::kCollNet) {
    append_reduction_trees(fabric, members, out);
  } else if (plan.nic_crossings > 0 && plan.algorithm == Algorithm::kPairwise) {
    append_exchange_above_tors(fabric, members, plan, out);
  } else if (plan.nic_crossings > 0) {
    HostRing ring;
    build_ring(fabric, members, ring);
    std::vector<Crossing> upper;
    for (size_t run = 0; run < ring.runs.size(); ++run) {
      const std::span<const GpuId> from = ring.members(run), to = ring.members_after(run);
      for (size_t i = 0; i < from.size(); ++i) {
        count_edge_above_tors(fabric, from[i], rail_partner(fabric, from[i], i, to), upper);
      }
    }
    sort_and_merge(upper, 0);
    for (const Crossing& crossing : upper) {
      out.push_back({.link = crossing.link, .count = crossing.count * plan.nic_crossings});
    }
  }
  sort_and_merge(out, begin);
}

int64_t append_connections(const Fabric& fabric, std::span<const GpuId> members,
                           const CollectivePlan& plan, std::vector<Connection>& out) {
  // A rank's data goes to thousands of servers, over as many paths.
  if (is_of_store(plan.algorithm)) return 1;
  if (plan.part == GroupPart::kRail) {
    int64_t sharing = 1;
    for (const std::vector<GpuId>& rail : rails_of(fabric, members)) {
      sharing = std::max(sharing, append_connections(fabric, rail, plan_of_whole(plan), out));
    }
    return sharing;
  }
  const auto append = [&](GpuId from, GpuId to) {
    if (fabric.tor_of(from) != fabric.tor_of(to)) out.push_back({from, to});
  };
  HostRing ring;
  build_ring(fabric, members, ring);
  if (ring.runs.size() < 2) return 1;
  // Sums take the trees that the fabric manager laid out.
  if (plan.algorithm == Algorithm::kCollNet) return 1;
  if (plan.algorithm == Algorithm::kPairwise) {
    constexpr size_t kInFlight = 8;
    const std::span<const GpuId> order = ring.ordered;
    const size_t partners = std::min(kInFlight, ring.runs.size() - 1);
    for (size_t run = 0; run < ring.runs.size(); ++run) {
      for (size_t i = 0; i < ring.runs[run].count; ++i) {
        for (size_t p = 1; p <= partners; ++p) {
          const HostRun& to = ring.runs[(run + p) % ring.runs.size()];
          append(order[ring.runs[run].first + i], order[to.first + (i + p) % to.count]);
        }
      }
    }
    return static_cast<int64_t>(partners);
  }
  for (size_t run = 0; run < ring.runs.size(); ++run) {
    const std::span<const GpuId> from = ring.members(run), to = ring.members_after(run);
    for (size_t i = 0; i < from.size(); ++i) append(from[i], rail_partner(fabric, from[i], i, to));
  }
  return 1;
}

void append_point_to_point_path(const Fabric& fabric, GpuId a, GpuId b,
                                std::vector<Crossing>& out) {
  HERDSIM_DCHECK(a != b);
  const size_t begin = out.size();
  const auto append = [&](LinkId link) {
    if (fabric.can_bind(link)) out.push_back({.link = link, .count = 1});
  };
  if (fabric.host_of(a) == fabric.host_of(b)) {
    append(fabric.nvlink_out(a));
    append(fabric.nvlink_in(b));
  } else {
    const auto& nodes = fabric.nodes();
    const NodeId tor = fabric.tor_of(a);
    for (NodeId from = fabric.node_of(a), to = fabric.node_of(b); from != tor;
         from = nodes[from].parent, to = nodes[to].parent) {
      append(nodes[from].up);
      append(nodes[to].down());
    }
    count_edge_above_tors(fabric, a, b, out);
  }
  sort_and_merge(out, begin);
}

}  // namespace herdsim

#include "sim/collectives/torus_collective.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

double as_double(int64_t n) { return static_cast<double>(n); }

// Of one axis, over the bytes that are there when it is done: what the busiest link carries one
// way.
double gather_share(const TorusAxis& axis) {
  const double c = as_double(axis.count);
  return (c - 1) / c * (axis.is_ring ? 0.5 : 1);
}

int64_t gather_hops(const TorusAxis& axis) {
  return axis.stride * (axis.is_ring ? axis.count / 2 : axis.count - 1);
}

// Of an exchange along the axis, over what a chip sends in all. Half way around a ring goes half
// each way.
double exchange_share(const TorusAxis& axis) {
  const int64_t c = axis.count;
  const int64_t pairs_of_link = axis.is_ring ? c * c - c % 2 : c / 2 * (c - c / 2) * 8;
  return as_double(pairs_of_link) / as_double(8 * c);
}

std::vector<TorusAxis> extended_axes(const TorusGroup& g) {
  std::vector<TorusAxis> axes;
  for (const TorusAxis& axis : g.axes) {
    if (axis.count > 1) axes.push_back(axis);
  }
  return axes;
}

// The parts rotate: in phase j part r is gathered along axis (r + j) mod k.
double gather_share(const std::vector<TorusAxis>& axes) {
  const size_t k = axes.size();
  double sum = 0;
  for (size_t phase = 0; phase < k; ++phase) {
    double longest = 0;
    for (size_t part = 0; part < k; ++part) {
      double size = 1 / as_double(static_cast<int64_t>(k));
      for (size_t later = phase + 1; later < k; ++later) {
        size /= as_double(axes[(part + later) % k].count);
      }
      longest = std::max(longest, size * gather_share(axes[(part + phase) % k]));
    }
    sum += longest;
  }
  return sum;
}

// How often the data passes the rings.
int64_t passes_of(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBroadcast ? 2 : 1;
}

struct TorusCost {
  double share = 0;  // of the message, on the busiest link
  int64_t hops = 0;
};

TorusCost ring_cost(CollectiveKind kind, const GroupShape& g) {
  const int64_t passes = passes_of(kind);
  if (!g.torus.is_box) {
    // One ring both ways.
    const double share = as_double(g.ranks - 1) / as_double(2 * g.ranks);
    return {as_double(passes) * share, passes * (g.ranks / 2) * g.torus.longest_edge};
  }
  int64_t hops = 0;
  for (const TorusAxis& axis : g.torus.axes) hops += gather_hops(axis);
  return {as_double(passes) * gather_share(extended_axes(g.torus)), passes * hops};
}

TorusCost exchange_cost(const GroupShape& g) {
  // A pair's bytes; its routes say how many pairs share a link.
  if (!g.torus.is_box) return {1 / as_double(g.ranks), g.torus.longest_edge};
  TorusCost cost;
  for (const TorusAxis& axis : g.torus.axes) {
    cost.share = std::max(cost.share, exchange_share(axis));
    cost.hops += gather_hops(axis);
  }
  return cost;
}

TorusCost cost_of(CollectiveKind kind, const GroupShape& g) {
  if (kind == CollectiveKind::kSendRecv) return {1, g.torus.longest_edge};
  return kind == CollectiveKind::kAllToAll ? exchange_cost(g) : ring_cost(kind, g);
}

// Coordinates of the members along one dimension, each once.
std::vector<int64_t> coordinates(const TorusShape& torus, std::span<const GpuId> members,
                                 size_t d) {
  std::vector<int64_t> values;
  for (const GpuId gpu : members) values.push_back(torus.at(static_cast<int64_t>(gpu.index()))[d]);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

bool is_evenly_spaced(const std::vector<int64_t>& values) {
  for (size_t i = 2; i < values.size(); ++i) {
    if (values[i] - values[i - 1] != values[1] - values[0]) return false;
  }
  return true;
}

void append_both_ways(const Fabric& fabric, GpuId a, GpuId b, std::vector<LinkId>& links) {
  fabric.append_route_above_tors(a, b, links);
  fabric.append_route_above_tors(b, a, links);
}

// From every member along every axis to the next one.
void append_box_links(const TorusShape& torus, const TorusGroup& group, const Fabric& fabric,
                      std::span<const GpuId> members, std::vector<LinkId>& links) {
  TorusShape::Coordinates last{};
  for (size_t d = 0; d < last.size(); ++d) last[d] = coordinates(torus, members, d).back();
  for (const GpuId gpu : members) {
    const TorusShape::Coordinates here = torus.at(static_cast<int64_t>(gpu.index()));
    for (size_t d = 0; d < here.size(); ++d) {
      const TorusAxis& axis = group.axes[d];
      if (axis.count == 1 || (here[d] == last[d] && !axis.is_ring)) continue;
      TorusShape::Coordinates next = here;
      next[d] = (here[d] + axis.stride) % torus.extents[d];
      append_both_ways(fabric, gpu, GpuId(static_cast<size_t>(torus.chip(next))), links);
    }
  }
}

}  // namespace

TorusGroup torus_group(const TorusShape& torus, std::span<const GpuId> members) {
  TorusGroup group{.on_torus = true, .is_box = true};
  size_t box = 1;
  for (size_t d = 0; d < group.axes.size(); ++d) {
    const std::vector<int64_t> values = coordinates(torus, members, d);
    TorusAxis& axis = group.axes[d];
    axis.count = static_cast<int64_t>(values.size());
    if (values.size() > 1) axis.stride = values[1] - values[0];
    group.is_box = group.is_box && is_evenly_spaced(values);
    // Two chips half way around use the links between them one way only.
    axis.is_ring =
        axis.count > 2 && torus.is_ring(d) && axis.stride * axis.count == torus.extents[d];
    box *= values.size();
  }
  // As many members as combinations: each is there.
  group.is_box = group.is_box && box == members.size();
  for (size_t i = 0; i < members.size(); ++i) {
    const GpuId next = members[i + 1 < members.size() ? i + 1 : 0];
    group.longest_edge =
        std::max(group.longest_edge, torus.distance(static_cast<int64_t>(members[i].index()),
                                                    static_cast<int64_t>(next.index())));
  }
  if (!group.is_box) group.axes = {};
  return group;
}

CollectivePlan plan_on_torus(CollectiveKind kind, Bytes bytes, const GroupShape& g,
                             const NcclTuning& t) {
  const bool pairwise = kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv;
  const TorusCost cost = cost_of(kind, g);
  CollectivePlan plan;
  plan.algorithm = pairwise ? Algorithm::kPairwise : Algorithm::kTorusRings;
  plan.latency = seconds_rounded_up(as_double(cost.hops) * t.torus_hop * 1e-6);
  plan.volume = Bytes(static_cast<int64_t>(std::ceil(as_double(bytes.count()) * cost.share)));
  plan.rate_cap =
      std::max(Bandwidth::from_bytes_per_second(1), bytes_per_second(t.torus_link * 1e9));
  plan.nic_crossings = 1;
  plan.extrapolated = !g.torus.is_box && kind != CollectiveKind::kSendRecv;
  return plan;
}

void append_torus_path(const Fabric& fabric, std::span<const GpuId> members,
                       const CollectivePlan& plan, std::vector<Crossing>& out) {
  const TorusShape& torus = *fabric.torus();
  const TorusGroup group = torus_group(torus, members);
  std::vector<LinkId> links;
  if (group.is_box) {
    append_box_links(torus, group, fabric, members, links);
  } else if (plan.algorithm == Algorithm::kPairwise) {
    for (const GpuId from : members) {
      for (const GpuId to : members) {
        if (from != to) fabric.append_route_above_tors(from, to, links);
      }
    }
  } else {
    for (size_t i = 0; i < members.size(); ++i) {
      append_both_ways(fabric, members[i], members[(i + 1) % members.size()], links);
    }
  }
  std::sort(links.begin(), links.end());
  const size_t begin = out.size();
  for (const LinkId link : links) {
    if (out.size() > begin && out.back().link == link) {
      ++out.back().count;
    } else {
      out.push_back({link, 1});
    }
  }
}

}  // namespace herdsim

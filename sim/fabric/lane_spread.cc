#include "sim/fabric/lane_spread.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

// The bundles a connection crosses above its ToRs: up and down inside a pod, or by way of the core.
struct BundlePath {
  std::array<LinkId, 4> links;
  size_t count = 0;
};

BundlePath bundles_between(const Fabric& fabric, const Connection& c) {
  const auto& nodes = fabric.nodes();
  const NodeId from = fabric.tor_of(c.from), to = fabric.tor_of(c.to);
  HERDSIM_DCHECK(from != to);
  const NodeId from_pod = nodes[from].parent, to_pod = nodes[to].parent;
  if (from_pod == to_pod) return {{nodes[from].up, nodes[to].down()}, 2};
  return {{nodes[from].up, nodes[from_pod].up, nodes[to_pod].down(), nodes[to].down()}, 4};
}

// Four 16-bit draws of one hash; a draw of one of n lanes is biased by less than n / 65,536.
class LaneDraws {
 public:
  LaneDraws(uint64_t seed, uint64_t connection) : state_(mix64(seed ^ mix64(connection))) {}
  uint32_t next(uint32_t lanes) {
    if (left_ == 0) {
      word_ = state_ = mix64(state_ + 1);
      left_ = 4;
    }
    const auto draw = static_cast<uint32_t>(word_ & 0xffff);
    word_ >>= 16;
    --left_;
    return draw * lanes >> 16;
  }

 private:
  uint64_t state_, word_ = 0;
  int left_ = 0;
};

class Spreading {
 public:
  Spreading(const Fabric& fabric, const TypedVector<LinkId, uint32_t>& working_lanes,
            const LaneSpread& spread, uint64_t seed)
      : fabric_(fabric), lanes_(working_lanes), spread_(spread), seed_(seed) {
    size_t end = 0;
    first_bundle_ = fabric.links().size();
    for_each_bundle([&](LinkId link) {
      first_bundle_ = std::min(first_bundle_, link.index());
      end = std::max(end, link.index() + 1);
    });
    if (end > 0) first_lane_.assign(end - first_bundle_, 0);
    uint32_t total = 0;
    for_each_bundle([&](LinkId link) {
      first_lane_[link.index() - first_bundle_] = total;
      total += lanes_[link];
    });
    load_.assign(total, 0);
    if (spread.rule == SpreadRule::kPinned) number_ports();
  }

  // Puts the subflows of all connections on lanes.
  void assign(std::span<const Connection> connections) {
    const auto subflows = static_cast<size_t>(spread_.subflows);
    slots_.reserve(connections.size() * subflows * 2);
    for (size_t c = 0; c < connections.size(); ++c) {
      const BundlePath path = bundles_between(fabric_, connections[c]);
      LaneDraws draws(seed_, c);
      for (size_t s = 0; s < subflows; ++s) place(connections[c], path, s, draws);
    }
  }

  // What connection `c` gets of its part of a NIC, 1 without collisions. Called in ascending order.
  double rate(const Connection& c, double lane_in_subflows) {
    const size_t hops = bundles_between(fabric_, c).count;
    double slowest = 1, sum = 0;
    for (int64_t s = 0; s < spread_.subflows; ++s) {
      uint32_t load = 0;
      for (size_t h = 0; h < hops; ++h) load = std::max(load, load_[slots_[read_++]]);
      const double share = std::min(1.0, lane_in_subflows / load);
      slowest = std::min(slowest, share);
      sum += share;
    }
    const double mean = sum / static_cast<double>(spread_.subflows);
    return slowest + spread_.rebalanced * (mean - slowest);
  }

  std::vector<LaneHop> hops_of(const Connection& c) {
    const BundlePath path = bundles_between(fabric_, c);
    std::vector<LaneHop> hops;
    for (size_t h = 0; h < path.count; ++h) {
      hops.push_back({path.links[h], slots_[read_++] - slot(path.links[h], 0)});
    }
    return hops;
  }

 private:
  void number_ports() {
    std::vector<uint32_t> next(fabric_.nodes().size(), 0);
    for (size_t g = 0; g < fabric_.gpus(); ++g) {
      port_.push_back(next[fabric_.tor_of(GpuId(g)).index()]++);
    }
  }

  // Of the cables above ToRs, up and down.
  template <class Visit>
  void for_each_bundle(const Visit& visit) const {
    for (size_t i = 0; i < fabric_.nodes().size(); ++i) {
      const Node& node = fabric_.nodes()[NodeId(i)];
      if (node.kind != NodeKind::kTor && node.kind != NodeKind::kPod) continue;
      if (node.parent == NodeId(i)) continue;
      visit(node.up);
      visit(node.down());
    }
  }

  uint32_t slot(LinkId link, uint32_t lane) const {
    return first_lane_[link.index() - first_bundle_] + lane;
  }

  void place(const Connection& c, const BundlePath& path, size_t subflow, LaneDraws& draws) {
    // A spine has one cable to each ToR, so inside a pod one choice names both lanes; where failed
    // cables left fewer on one side, the draw wraps around.
    uint32_t lane = 0;
    for (size_t h = 0; h < path.count; ++h) {
      const uint32_t lanes = lanes_[path.links[h]];
      const bool same_spine = path.count == 2 && h == 1;
      switch (spread_.rule) {
        case SpreadRule::kEven:
        case SpreadRule::kHashed:
          lane = same_spine ? lane % lanes : draws.next(lanes);
          break;
        case SpreadRule::kHashedApart:
          if (subflow == 0) first_of_connection_[h] = draws.next(lanes);
          lane = (same_spine ? lane : first_of_connection_[h] + static_cast<uint32_t>(subflow)) %
                 lanes;
          break;
        case SpreadRule::kPinned:
          // Above the ToRs there are more destinations than ports of one rack.
          lane = (h == 0 || h + 1 == path.count ? port_[c.to.index()]
                                                : static_cast<uint32_t>(c.to.index())) %
                 lanes;
          break;
        case SpreadRule::kPlanned:
          lane = same_spine ? lane % lanes : least_loaded(path, h);
          break;
      }
      const uint32_t at = slot(path.links[h], lane);
      ++load_[at];
      slots_.push_back(at);
    }
  }

  // Of the lanes of a bundle; inside a pod the spine's other side counts too.
  uint32_t least_loaded(const BundlePath& path, size_t hop) const {
    const LinkId link = path.links[hop];
    const bool paired = path.count == 2 && hop == 0;
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t lane = 0; lane < lanes_[link] && least > 0; ++lane) {
      uint32_t load = load_[slot(link, lane)];
      if (paired) {
        load = std::max(load, load_[slot(path.links[1], lane % lanes_[path.links[1]])]);
      }
      if (load < least) {
        least = load;
        best = lane;
      }
    }
    return best;
  }

  const Fabric& fabric_;
  const TypedVector<LinkId, uint32_t>& lanes_;
  const LaneSpread& spread_;
  const uint64_t seed_;
  size_t first_bundle_ = 0;           // the lowest link above a ToR; they are numbered together
  std::vector<uint32_t> first_lane_;  // by link from there on: where its lanes begin in load_
  std::vector<uint32_t> load_;        // subflows on each lane
  std::vector<uint32_t> slots_;       // by connection, subflow and hop: the lane in load_
  std::vector<uint32_t> port_;        // of a GPU at its ToR
  std::array<uint32_t, 4> first_of_connection_{};  // by hop: its first subflow's lane
  size_t read_ = 0;
};

// How many subflows at their part of a NIC fill a lane.
double lane_in_subflows(const Fabric& fabric, const Connection& c, int64_t sharing,
                        const LaneSpread& spread) {
  const Link& nic = fabric.links()[fabric.nodes()[fabric.nic_of(c.from)].up];
  const Link& up = fabric.links()[fabric.nodes()[fabric.tor_of(c.from)].up];
  const double lane = up.capacity.gigabytes_per_second() / up.width;
  return lane / nic.capacity.gigabytes_per_second() *
         static_cast<double>(spread.subflows * sharing);
}

// More subflows than these are sampled.
constexpr size_t kMostSubflows = 1 << 16;

// Of many connections, those that are looked at, first, and then those that load their lanes.
struct Sample {
  std::vector<Connection> connections;
  size_t looked_at = 0;
};

// Takes all connections of every n-th source ToR. What else arrives at their destinations' ToRs,
// and all that crosses pods, loads the same lanes. Where that is most of them, as in a random
// order, it takes all.
Sample sample_of(const Fabric& fabric, std::span<const Connection> all, int64_t subflows) {
  const size_t stride = (all.size() * static_cast<size_t>(subflows) - 1) / kMostSubflows + 1;
  Sample sample;
  std::vector<uint32_t> number(fabric.nodes().size(), 0);
  std::vector<bool> is_reached(fabric.nodes().size());
  uint32_t tors = 0;
  const auto is_taken = [&](const Connection& c) {
    uint32_t& of_tor = number[fabric.tor_of(c.from).index()];
    if (of_tor == 0) of_tor = ++tors;
    return (of_tor - 1) % stride == 0;
  };
  for (const Connection& c : all) {
    if (stride > 1 && !is_taken(c)) continue;
    sample.connections.push_back(c);
    if (stride > 1) is_reached[fabric.tor_of(c.to).index()] = true;
  }
  sample.looked_at = sample.connections.size();
  if (stride == 1) return sample;
  for (const Connection& c : all) {
    const bool loads = is_reached[fabric.tor_of(c.to).index()] ||
                       fabric.hop_class(c.from, c.to) == HopClass::kCrossPod;
    if (loads && !is_taken(c)) sample.connections.push_back(c);
  }
  if (sample.connections.size() < all.size() / 2) return sample;
  return {{all.begin(), all.end()}, all.size()};
}

// Of the worst of eight parts that follow one another.
constexpr size_t kParts = 8;

double spread_of(const std::array<double, kParts>& maxima) {
  double mean = 0, square = 0;
  for (const double m : maxima) mean += m / kParts;
  for (const double m : maxima) square += (m - mean) * (m - mean) / (kParts - 1);
  return std::sqrt(square);
}

// How far the maximum of `all` draws lies beyond that of `taken` of them, if it has this standard
// deviation: maxima of light-tailed draws follow Gumbel's law, whose scale is sqrt(6) / pi of it
// and whose mean grows with the logarithm.
double beyond_sample(double deviation, size_t all, size_t taken) {
  constexpr double kScale = 0.7797;
  return deviation * kScale * std::log(static_cast<double>(all) / static_cast<double>(taken));
}

}  // namespace

SpreadEffect connection_slowdown(const Fabric& fabric,
                                 const TypedVector<LinkId, uint32_t>& working_lanes,
                                 std::span<const Connection> connections, int64_t sharing,
                                 const LaneSpread& spread, uint64_t seed) {
  HERDSIM_DCHECK(spread.subflows >= 1 && sharing >= 1 && spread.line_share > 0);
  SpreadEffect effect{.worst = 1 / spread.line_share, .mean = 1 / spread.line_share};
  effect.connections = static_cast<int64_t>(connections.size());
  if (spread.rule == SpreadRule::kEven || connections.empty()) return effect;
  const Sample sample = sample_of(fabric, connections, spread.subflows);
  Spreading lanes(fabric, working_lanes, spread, seed);
  lanes.assign(sample.connections);
  std::array<double, kParts> maxima{};
  double sum = 0;
  for (size_t c = 0; c < sample.looked_at; ++c) {
    const Connection& connection = sample.connections[c];
    const double fill = lane_in_subflows(fabric, connection, sharing, spread);
    const double slowdown = 1 / (lanes.rate(connection, fill) * spread.line_share);
    double& most = maxima[c * kParts / sample.looked_at];
    most = std::max(most, slowdown);
    sum += slowdown;
  }
  effect.mean = sum / static_cast<double>(sample.looked_at);
  if (sample.looked_at >= kParts) effect.error = spread_of(maxima);
  effect.worst = *std::max_element(maxima.begin(), maxima.end()) +
                 beyond_sample(effect.error, connections.size(), sample.looked_at);
  const double without = 1 / spread.line_share;
  effect.mean = without + spread.mean_excess * (effect.mean - without);
  effect.worst = without + spread.worst_excess * (effect.worst - without);
  effect.error *= spread.worst_excess;
  return effect;
}

std::vector<std::vector<LaneHop>> subflow_lanes(const Fabric& fabric,
                                                const TypedVector<LinkId, uint32_t>& working_lanes,
                                                std::span<const Connection> connections,
                                                const LaneSpread& spread, uint64_t seed) {
  Spreading lanes(fabric, working_lanes, spread, seed);
  lanes.assign(connections);
  std::vector<std::vector<LaneHop>> hops;
  for (const Connection& c : connections) {
    for (int64_t s = 0; s < spread.subflows; ++s) hops.push_back(lanes.hops_of(c));
  }
  return hops;
}

}  // namespace herdsim

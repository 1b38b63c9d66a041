#include "sim/fabric/lane_spread.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

// The bundles a connection crosses above its ToRs: up and down inside a pod, or by way of the core.
constexpr size_t kMostHops = 4;
struct BundlePath {
  std::array<LinkId, kMostHops> links;
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
  Spreading(const Fabric& fabric, const LaneBundles& bundles, const LaneSpread& spread,
            uint64_t seed)
      : fabric_(fabric),
        bundles_(bundles),
        spread_(spread),
        seed_(seed),
        load_(bundles.total_lanes(), 0) {
    if (spread.rule == SpreadRule::kPinned) number_ports();
  }

  // Puts the subflows of all connections on lanes.
  void assign(std::span<const Connection> connections) {
    slots_.reserve(connections.size() * static_cast<size_t>(spread_.subflows) * 2);
    switch (spread_.rule) {
      case SpreadRule::kEven:
      case SpreadRule::kHashed:
        assign_by<SpreadRule::kHashed>(connections);
        break;
      case SpreadRule::kHashedApart:
        assign_by<SpreadRule::kHashedApart>(connections);
        break;
      case SpreadRule::kPinned:
        assign_by<SpreadRule::kPinned>(connections);
        break;
      case SpreadRule::kPlanned:
        assign_by<SpreadRule::kPlanned>(connections);
        break;
    }
    for (size_t b = 0; b < bundles_.bundles(); ++b) {
      uint32_t most = 0;
      for (size_t lane = bundles_.first_lane(b); lane < bundles_.first_lane(b + 1); ++lane) {
        most = std::max(most, load_[lane]);
      }
      most_.push_back(most);
    }
  }

  // What connection `c` gets of its part of a NIC, 1 without collisions. Called in ascending order.
  double rate(const Connection& c, double lane_in_subflows) {
    if (lane_in_subflows != shares_of_) list_shares(lane_in_subflows);
    const BundlePath path = bundles_between(fabric_, c);
    const size_t hops = path.count;
    if (std::all_of(path.links.begin(), path.links.begin() + static_cast<std::ptrdiff_t>(hops),
                    [&](LinkId link) { return most_[bundles_.number(link)] <= shares_of_; })) {
      read_ += hops * static_cast<size_t>(spread_.subflows);
      return 1;
    }
    double slowest = 1, sum = 0;
    const uint32_t* slot = slots_.data() + read_;
    for (int64_t s = 0; s < spread_.subflows; ++s) {
      uint32_t load = 0;
      for (const uint32_t* end = slot + hops; slot != end; ++slot) {
        load = std::max(load, load_[*slot]);
      }
      const double share = share_[load];
      slowest = std::min(slowest, share);
      sum += share;
    }
    read_ = static_cast<size_t>(slot - slots_.data());
    const double mean = sum / static_cast<double>(spread_.subflows);
    return slowest + spread_.rebalanced * (mean - slowest);
  }

  std::vector<LaneHop> hops_of(const Connection& c) {
    const BundlePath path = bundles_between(fabric_, c);
    std::vector<LaneHop> hops;
    for (size_t h = 0; h < path.count; ++h) {
      const uint32_t first = bundles_.first_lane(bundles_.number(path.links[h]));
      hops.push_back({path.links[h], slots_[read_++] - first});
    }
    return hops;
  }

 private:
  struct Hop {
    uint32_t first_slot, lanes;  // of the bundle
    uint32_t lane;               // of the subflow at hand
  };

  void number_ports() {
    std::vector<uint32_t> next(fabric_.nodes().size(), 0);
    for (size_t g = 0; g < fabric_.gpus(); ++g) {
      port_.push_back(next[fabric_.tor_of(GpuId(g)).index()]++);
    }
  }

  // One copy a rule: this is the inner loop.
  template <SpreadRule rule>
  void assign_by(std::span<const Connection> connections) {
    const auto subflows = static_cast<size_t>(spread_.subflows);
    for (size_t c = 0; c < connections.size(); ++c) {
      const BundlePath path = bundles_between(fabric_, connections[c]);
      std::array<Hop, kMostHops> hops{};
      for (size_t h = 0; h < path.count; ++h) {
        const size_t bundle = bundles_.number(path.links[h]);
        hops[h] = {bundles_.first_lane(bundle), bundles_.lanes(bundle), 0};
      }
      LaneDraws draws(seed_, c);
      const size_t begin = slots_.size();
      slots_.resize(begin + subflows * path.count);
      uint32_t* slot = slots_.data() + begin;
      if constexpr (rule == SpreadRule::kHashedApart) {
        place_in_a_row({hops.data(), path.count}, draws, slot);
        continue;
      }
      for (size_t s = 0; s < subflows; ++s) {
        for (size_t h = 0; h < path.count; ++h) {
          Hop& hop = hops[h];
          // A spine has one cable to each ToR, so inside a pod one choice names both lanes; where
          // failed cables left fewer on one side, the draw wraps around.
          hop.lane = path.count == 2 && h == 1 && rule != SpreadRule::kPinned
                         ? wrapped(hops[0].lane, hop.lanes)
                         : lane_by<rule>(connections[c], {hops.data(), path.count}, h, draws);
          *slot = hop.first_slot + hop.lane;
          ++load_[*slot++];
        }
      }
    }
  }

  // The subflows of a connection on lanes that follow one another.
  void place_in_a_row(std::span<const Hop> hops, LaneDraws& draws, uint32_t* slots) {
    const size_t end = static_cast<size_t>(spread_.subflows) * hops.size();
    for (size_t h = 0; h < hops.size(); ++h) {
      const bool names_both = hops.size() == 2 && h == 1;
      const uint32_t lanes = hops[h].lanes, first = hops[h].first_slot;
      uint32_t lane = names_both ? 0 : draws.next(lanes);
      for (size_t at = h; at < end; at += hops.size()) {
        if (names_both) lane = wrapped(slots[at - 1] - hops[0].first_slot, lanes);
        slots[at] = first + lane;
        ++load_[first + lane];
        lane = wrapped(lane + 1, lanes);
      }
    }
  }

  static uint32_t wrapped(uint32_t lane, uint32_t lanes) {
    return lane < lanes ? lane : lane % lanes;
  }

  template <SpreadRule rule>
  uint32_t lane_by(const Connection& c, std::span<const Hop> hops, size_t h,
                   LaneDraws& draws) const {
    const uint32_t lanes = hops[h].lanes;
    switch (rule) {
      case SpreadRule::kEven:
      case SpreadRule::kHashed:
      case SpreadRule::kHashedApart:  // see place_in_a_row()
        return draws.next(lanes);
      case SpreadRule::kPinned:
        // Above the ToRs there are more destinations than ports of one rack.
        return (h == 0 || h + 1 == hops.size() ? port_[c.to.index()]
                                               : static_cast<uint32_t>(c.to.index())) %
               lanes;
      case SpreadRule::kPlanned:
        return least_loaded(hops, h);
    }
    return 0;
  }

  // Of the lanes of a bundle; inside a pod the spine's other side counts too.
  uint32_t least_loaded(std::span<const Hop> hops, size_t h) const {
    const bool paired = hops.size() == 2 && h == 0;
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t lane = 0; lane < hops[h].lanes && least > 0; ++lane) {
      uint32_t load = load_[hops[h].first_slot + lane];
      if (paired) {
        load = std::max(load, load_[hops[1].first_slot + wrapped(lane, hops[1].lanes)]);
      }
      if (load < least) {
        least = load;
        best = lane;
      }
    }
    return best;
  }

  void list_shares(double lane_in_subflows) {
    shares_of_ = lane_in_subflows;
    share_.assign(*std::max_element(most_.begin(), most_.end()) + 1, 1);
    for (uint32_t load = 1; load < share_.size(); ++load) {
      share_[load] = std::min(1.0, lane_in_subflows / load);
    }
  }

  const Fabric& fabric_;
  const LaneBundles& bundles_;
  const LaneSpread& spread_;
  const uint64_t seed_;
  std::vector<uint32_t> load_;   // subflows on each lane
  std::vector<uint32_t> most_;   // of the lanes of each bundle
  std::vector<uint32_t> slots_;  // by connection, subflow and hop: the lane in load_
  std::vector<uint32_t> port_;   // of a GPU at its ToR
  double shares_of_ = 0;         // how many subflows fill a lane, in the list below
  std::vector<double> share_;    // by load of a lane: what a subflow gets
  size_t read_ = 0;
};

// How many subflows at their part of a NIC fill a lane: nearly always as many as for the connection
// before.
class LaneFill {
 public:
  LaneFill(const Fabric& fabric, int64_t sharing, const LaneSpread& spread)
      : fabric_(fabric), subflows_(static_cast<double>(spread.subflows * sharing)) {}

  double of(const Connection& c) {
    const Link nic = fabric_.links()[fabric_.nodes()[fabric_.nic_of(c.from)].up];
    const Link up = fabric_.links()[fabric_.nodes()[fabric_.tor_of(c.from)].up];
    if (nic.capacity != nic_ || up.capacity != up_ || up.width != width_) {
      nic_ = nic.capacity;
      up_ = up.capacity;
      width_ = up.width;
      fill_ = up_.gigabytes_per_second() / width_ / nic_.gigabytes_per_second() * subflows_;
    }
    return fill_;
  }

 private:
  const Fabric& fabric_;
  const double subflows_;
  Bandwidth nic_, up_;
  uint32_t width_ = 0;
  double fill_ = 0;
};

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
  if (stride == 1) return {{all.begin(), all.end()}, all.size()};
  Sample sample;
  std::vector<uint32_t> number(fabric.nodes().size(), 0);
  std::vector<bool> is_reached(fabric.nodes().size()), is_taken(all.size());
  uint32_t tors = 0;
  for (size_t c = 0; c < all.size(); ++c) {
    uint32_t& of_tor = number[fabric.tor_of(all[c].from).index()];
    if (of_tor == 0) of_tor = ++tors;
    if ((of_tor - 1) % stride != 0) continue;
    is_taken[c] = true;
    sample.connections.push_back(all[c]);
    is_reached[fabric.tor_of(all[c].to).index()] = true;
  }
  sample.looked_at = sample.connections.size();
  for (size_t c = 0; c < all.size(); ++c) {
    if (is_taken[c]) continue;
    if (is_reached[fabric.tor_of(all[c].to).index()] ||
        bundles_between(fabric, all[c]).count == kMostHops) {
      sample.connections.push_back(all[c]);
    }
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

LaneBundles::LaneBundles(const Fabric& fabric,
                         const std::function<uint32_t(LinkId)>& working_lanes) {
  const std::span<const CableRun> runs = fabric.cable_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].kind != LinkKind::kTorToPod && runs[i].kind != LinkKind::kPodToCore) continue;
    const size_t end = i + 1 < runs.size() ? runs[i + 1].first : fabric.tree_cables();
    if (first_lane_.size() == 1) first_bundle_ = 2 * runs[i].first;
    first_lane_.resize(2 * runs[i].first - first_bundle_ + 1, first_lane_.back());
    for (size_t link = 2 * runs[i].first; link < 2 * end; ++link) {
      first_lane_.push_back(first_lane_.back() + working_lanes(LinkId(link)));
    }
  }
}

SpreadEffect connection_slowdown(const Fabric& fabric, const LaneBundles& bundles,
                                 std::span<const Connection> connections, int64_t sharing,
                                 const LaneSpread& spread, uint64_t seed) {
  HERDSIM_DCHECK(spread.subflows >= 1 && sharing >= 1 && spread.line_share > 0);
  SpreadEffect effect{.worst = 1 / spread.line_share, .mean = 1 / spread.line_share};
  effect.connections = static_cast<int64_t>(connections.size());
  if (spread.rule == SpreadRule::kEven || connections.empty()) return effect;
  const Sample sample = sample_of(fabric, connections, spread.subflows);
  Spreading lanes(fabric, bundles, spread, seed);
  lanes.assign(sample.connections);
  LaneFill fill(fabric, sharing, spread);
  std::array<double, kParts> maxima{};
  double sum = 0;
  for (size_t c = 0; c < sample.looked_at; ++c) {
    const Connection& connection = sample.connections[c];
    const double slowdown = 1 / (lanes.rate(connection, fill.of(connection)) * spread.line_share);
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

std::vector<std::vector<LaneHop>> subflow_lanes(const Fabric& fabric, const LaneBundles& bundles,
                                                std::span<const Connection> connections,
                                                const LaneSpread& spread, uint64_t seed) {
  Spreading lanes(fabric, bundles, spread, seed);
  lanes.assign(connections);
  std::vector<std::vector<LaneHop>> hops;
  for (const Connection& c : connections) {
    for (int64_t s = 0; s < spread.subflows; ++s) hops.push_back(lanes.hops_of(c));
  }
  return hops;
}

}  // namespace herdsim

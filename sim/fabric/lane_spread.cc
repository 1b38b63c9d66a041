#include "sim/fabric/lane_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

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
        in_rows_(spread.rule == SpreadRule::kHashedApart),
        load_(bundles.total_lanes() + 1, 0) {
    if (spread.rule == SpreadRule::kPinned) number_ports();
  }

  // Puts the subflows of all connections on lanes.
  void assign(std::span<const Connection> connections) {
    switch (spread_.rule) {
      case SpreadRule::kEven:
      case SpreadRule::kHashed:
        assign_by<SpreadRule::kHashed>(connections);
        break;
      case SpreadRule::kHashedApart:
        assign_rows(connections);
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
    if (std::all_of(path.links.begin(),
                    path.links.begin() + static_cast<std::ptrdiff_t>(path.count),
                    [&](LinkId link) { return most_[bundles_.number(link)] <= shares_of_; })) {
      read_ += entries_of(path);
      return 1;
    }
    double slowest = 1, sum = 0;
    const std::span<const uint32_t> slots = slots_of(path);
    for (auto slot = slots.begin(); slot != slots.end();) {
      uint32_t load = 0;
      for (size_t h = 0; h < path.count; ++h) load = std::max(load, load_[*slot++]);
      const double share = share_[load];
      slowest = std::min(slowest, share);
      sum += share;
    }
    const double mean = sum / static_cast<double>(spread_.subflows);
    return slowest + spread_.rebalanced * (mean - slowest);
  }

  // Of each subflow. Called in ascending order.
  void append_hops(const Connection& c, std::vector<std::vector<LaneHop>>& out) {
    const BundlePath path = bundles_between(fabric_, c);
    const std::span<const uint32_t> slots = slots_of(path);
    for (size_t at = 0; at < slots.size(); at += path.count) {
      std::vector<LaneHop>& hops = out.emplace_back();
      for (size_t h = 0; h < path.count; ++h) {
        const uint32_t first = bundles_.first_lane(bundles_.number(path.links[h]));
        hops.push_back({path.links[h], slots[at + h] - first});
      }
    }
  }

 private:
  struct Hop {
    uint32_t first_slot, lanes;  // of the bundle
    uint32_t lane;               // of the subflow at hand
  };
  using Hops = std::array<Hop, kMostHops>;

  Hops hops_of(const BundlePath& path) const {
    Hops hops{};
    for (size_t h = 0; h < path.count; ++h) {
      const size_t bundle = bundles_.number(path.links[h]);
      hops[h] = {bundles_.first_lane(bundle), bundles_.lanes(bundle), 0};
    }
    return hops;
  }

  // A spine has one cable to each ToR, so inside a pod one choice names both lanes; where failed
  // cables left fewer on one side, the draw wraps around.
  static bool is_named_by_first(const BundlePath& path, size_t hop) {
    return path.count == 2 && hop == 1;
  }
  static uint32_t wrapped(uint32_t lane, uint32_t lanes) {
    return lane < lanes ? lane : lane % lanes;
  }

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
    slots_.reserve(connections.size() * subflows * 2);
    for (size_t c = 0; c < connections.size(); ++c) {
      const BundlePath path = bundles_between(fabric_, connections[c]);
      Hops hops = hops_of(path);
      LaneDraws draws(seed_, c);
      for (size_t s = 0; s < subflows; ++s) {
        for (size_t h = 0; h < path.count; ++h) {
          Hop& hop = hops[h];
          hop.lane = is_named_by_first(path, h) && rule != SpreadRule::kPinned
                         ? wrapped(hops[0].lane, hop.lanes)
                         : lane_by<rule>(connections[c], {hops.data(), path.count}, h, draws);
          slots_.push_back(hop.first_slot + hop.lane);
          ++load_[slots_.back()];
        }
      }
    }
  }

  // The subflows of a connection on lanes that follow one another: of its slots only those of its
  // first subflow are kept, and load_ counts by how much a lane differs from the one before.
  void assign_rows(std::span<const Connection> connections) {
    const auto subflows = static_cast<uint32_t>(spread_.subflows);
    slots_.reserve(connections.size() * 2);
    for (size_t c = 0; c < connections.size(); ++c) {
      const BundlePath path = bundles_between(fabric_, connections[c]);
      Hops hops = hops_of(path);
      LaneDraws draws(seed_, c);
      for (size_t h = 0; h < path.count; ++h) {
        Hop& hop = hops[h];
        const bool follows = is_named_by_first(path, h);
        hop.lane = follows ? wrapped(hops[0].lane, hop.lanes) : draws.next(hop.lanes);
        slots_.push_back(hop.first_slot + hop.lane);
        if (!follows || hop.lanes == hops[0].lanes) {
          count_row(hop, subflows);
          continue;
        }
        for (uint32_t s = 0; s < subflows; ++s) {
          const uint32_t lane = wrapped(wrapped(hops[0].lane + s, hops[0].lanes), hop.lanes);
          count_row({hop.first_slot, hop.lanes, lane}, 1);
        }
      }
    }
    std::partial_sum(load_.begin(), load_.end(), load_.begin());
  }

  // From the lane on, round and round the bundle. Counts below zero wrap around as sums of them do.
  void count_row(const Hop& hop, uint32_t subflows) {
    const uint32_t rounds = subflows / hop.lanes, rest = subflows % hop.lanes;
    const uint32_t first = hop.first_slot, end = first + hop.lanes, begin = first + hop.lane;
    load_[first] += rounds;
    load_[end] -= rounds;
    ++load_[begin];
    if (begin + rest <= end) {
      --load_[begin + rest];
      return;
    }
    --load_[end];
    ++load_[first];
    --load_[begin + rest - hop.lanes];
  }

  size_t entries_of(const BundlePath& path) const {
    return in_rows_ ? path.count : path.count * static_cast<size_t>(spread_.subflows);
  }

  // Of the next connection, by subflow and hop. Valid until the next call.
  std::span<const uint32_t> slots_of(const BundlePath& path) {
    const std::span<const uint32_t> kept(slots_.data() + read_, entries_of(path));
    read_ += kept.size();
    if (!in_rows_) return kept;
    Hops hops = hops_of(path);
    row_.clear();
    for (uint32_t s = 0; s < spread_.subflows; ++s) {
      for (size_t h = 0; h < path.count; ++h) {
        Hop& hop = hops[h];
        hop.lane = is_named_by_first(path, h) ? wrapped(hops[0].lane, hop.lanes)
                                              : wrapped(kept[h] - hop.first_slot + s, hop.lanes);
        row_.push_back(hop.first_slot + hop.lane);
      }
    }
    return row_;
  }

  template <SpreadRule rule>
  uint32_t lane_by(const Connection& c, std::span<const Hop> hops, size_t h,
                   LaneDraws& draws) const {
    const uint32_t lanes = hops[h].lanes;
    switch (rule) {
      case SpreadRule::kEven:
      case SpreadRule::kHashed:
      case SpreadRule::kHashedApart:  // see assign_rows()
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
  const bool in_rows_;           // subflows of a connection take lanes one after another
  std::vector<uint32_t> load_;   // subflows on each lane, and none at the end
  std::vector<uint32_t> most_;   // of the lanes of each bundle
  std::vector<uint32_t> slots_;  // by connection, subflow and hop: the lane in load_
  std::vector<uint32_t> row_;    // the same of a connection that takes lanes in a row
  std::vector<uint32_t> port_;   // of a GPU at its ToR
  double shares_of_ = 0;         // how many subflows fill a lane, in the list below
  std::vector<double> share_;    // by load of a lane: what a subflow gets
  size_t read_ = 0;
};

// How many subflows at their part of a NIC fill a lane: as many as for the connection before where
// NIC and uplink are of the same runs of cables, as they nearly always are.
class LaneFill {
 public:
  LaneFill(const Fabric& fabric, int64_t sharing, const LaneSpread& spread)
      : fabric_(fabric), subflows_(static_cast<double>(spread.subflows * sharing)) {}

  double of(const Connection& c) {
    const LinkId nic = fabric_.nodes()[fabric_.nic_of(c.from)].up;
    const LinkId up = fabric_.nodes()[fabric_.tor_of(c.from)].up;
    if (!nics_.holds(nic) || !uplinks_.holds(up)) {
      nics_ = run_of(nic);
      uplinks_ = run_of(up);
      const double lane = uplinks_.cables.capacity.gigabytes_per_second() / uplinks_.cables.width;
      fill_ = lane / nics_.cables.capacity.gigabytes_per_second() * subflows_;
    }
    return fill_;
  }

 private:
  struct Run {
    CableRun cables;
    size_t end = 0;  // the cable after it
    bool holds(LinkId link) const {
      return link.index() / 2 >= cables.first && link.index() / 2 < end;
    }
  };
  Run run_of(LinkId link) const {
    const std::span<const CableRun> runs = fabric_.cable_runs();
    size_t end = fabric_.tree_cables();
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (link.index() / 2 >= run->first) return {*run, end};
      end = run->first;
    }
    return {};
  }

  const Fabric& fabric_;
  const double subflows_;
  Run nics_, uplinks_;
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
  for (const Connection& c : connections) lanes.append_hops(c, hops);
  return hops;
}

}  // namespace herdsim

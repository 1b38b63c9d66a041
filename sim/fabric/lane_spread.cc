#include "sim/fabric/lane_spread.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"
#include "sim/fabric/lane_loads.h"

namespace herdsim {
namespace {

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
  LaneLoads lanes(fabric, bundles, spread, seed);
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
  LaneLoads lanes(fabric, bundles, spread, seed);
  lanes.assign(connections);
  std::vector<std::vector<LaneHop>> hops;
  for (const Connection& c : connections) lanes.append_hops(c, hops);
  return hops;
}

}  // namespace herdsim

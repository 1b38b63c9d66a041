#include "sim/fabric/lane_loads.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

// A spine has one cable to each ToR, so inside a pod one choice names both lanes; where failed
// cables left fewer on one side, the draw wraps around.
bool is_named_by_first(const BundlePath& path, size_t hop) { return path.count == 2 && hop == 1; }
uint32_t wrapped(uint32_t lane, uint32_t lanes) { return lane < lanes ? lane : lane % lanes; }

}  // namespace

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

LaneLoads::LaneLoads(const Fabric& fabric, const LaneBundles& bundles, const LaneSpread& spread,
                     uint64_t seed)
    : fabric_(fabric),
      bundles_(bundles),
      spread_(spread),
      seed_(seed),
      in_rows_(spread.rule == SpreadRule::kHashedApart),
      load_(bundles.total_lanes() + 1, 0) {
  if (spread.rule == SpreadRule::kPinned) number_ports();
}

void LaneLoads::number_ports() {
  std::vector<uint32_t> next(fabric_.nodes().size(), 0);
  for (size_t g = 0; g < fabric_.gpus(); ++g) {
    port_.push_back(next[fabric_.tor_of(GpuId(g)).index()]++);
  }
}

LaneLoads::Hops LaneLoads::hops_of(const BundlePath& path) const {
  Hops hops{};
  for (size_t h = 0; h < path.count; ++h) {
    const size_t bundle = bundles_.number(path.links[h]);
    hops[h] = {bundles_.first_lane(bundle), bundles_.lanes(bundle), 0};
  }
  return hops;
}

uint32_t LaneLoads::least_loaded(std::span<const Hop> hops, size_t h) const {
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

template <SpreadRule rule>
uint32_t LaneLoads::lane_by(const Connection& c, std::span<const Hop> hops, size_t h,
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

template <SpreadRule rule>
void LaneLoads::assign_by(std::span<const Connection> connections) {
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

void LaneLoads::count_row(const Hop& hop, uint32_t subflows) {
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

void LaneLoads::assign_rows(std::span<const Connection> connections) {
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

void LaneLoads::assign(std::span<const Connection> connections) {
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

std::span<const uint32_t> LaneLoads::slots_of(const BundlePath& path) {
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

void LaneLoads::list_shares(double lane_in_subflows) {
  shares_of_ = lane_in_subflows;
  share_.assign(*std::max_element(most_.begin(), most_.end()) + 1, 1);
  for (uint32_t load = 1; load < share_.size(); ++load) {
    share_[load] = std::min(1.0, lane_in_subflows / load);
  }
}

double LaneLoads::rate(const Connection& c, double lane_in_subflows) {
  if (lane_in_subflows != shares_of_) list_shares(lane_in_subflows);
  const BundlePath path = bundles_between(fabric_, c);
  if (std::all_of(path.links.begin(), path.links.begin() + static_cast<std::ptrdiff_t>(path.count),
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

void LaneLoads::append_hops(const Connection& c, std::vector<std::vector<LaneHop>>& out) {
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

}  // namespace herdsim

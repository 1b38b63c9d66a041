#include "sim/symmetry/rank_classes.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

using Colour = uint64_t;

// One neighbour's contribution to a multiset: contributions add up in any order.
Colour contribution(Colour colour, uint64_t role) { return mix64(colour ^ mix64(role)); }

// Numbers colours by first appearance. Open addressing: few colours, many vertices.
class ColourIndex {
 public:
  ColourIndex() : slots_(64) {}
  uint32_t number(Colour colour) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = find(colour);
    if (slot.number == kFree) slot = {colour, count_++};
    return slot.number;
  }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Slot {
    Colour colour = 0;
    uint32_t number = kFree;
  };
  Slot& find(Colour colour) {
    size_t at = mix64(colour) & (slots_.size() - 1);
    while (slots_[at].number != kFree && slots_[at].colour != colour) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != kFree) find(slot.colour) = slot;
    }
  }
  std::vector<Slot> slots_;
  uint32_t count_ = 0;
};

Partition partition_of(const std::vector<Colour>& colours) {
  Partition partition;
  partition.class_of.reserve(colours.size());
  ColourIndex index;
  for (const Colour colour : colours) {
    const uint32_t number = index.number(colour);
    if (number == partition.representative.size()) {
      partition.representative.push_back(static_cast<uint32_t>(partition.class_of.size()));
      partition.size.push_back(0);
    }
    ++partition.size[number];
    partition.class_of.push_back(number);
  }
  return partition;
}

uint32_t distinct(const std::vector<Colour>& colours) {
  ColourIndex index;
  for (const Colour colour : colours) index.number(colour);
  return index.count();
}

Partition singletons(size_t count) {
  Partition partition;
  partition.class_of.resize(count);
  std::iota(partition.class_of.begin(), partition.class_of.end(), 0U);
  partition.representative = partition.class_of;
  partition.size.assign(count, 1);
  return partition;
}

std::vector<LinkId> crossed_links(const JobMap& map) {
  std::vector<LinkId> links;
  for (const Lane& lane : map.lanes) {
    for (const Crossing& crossing : lane.crossings) links.push_back(crossing.link);
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

class Refinement {
 public:
  Refinement(const OpGraph& graph, const Machine& machine, const JobMap& map)
      : graph_(graph), map_(map), links_(crossed_links(map)) {
    slot_of_link_.assign(machine.fabric.links().size(), 0);
    for (size_t i = 0; i < links_.size(); ++i) {
      slot_of_link_[links_[i].index()] = static_cast<uint32_t>(i);
      link_colour_.push_back(
          mix64(static_cast<uint64_t>(machine.capacity[links_[i]].bytes_per_second())));
    }
    for (size_t r = 0; r < graph.grid.ranks(); ++r) {
      const RankId rank(r);
      Fingerprint own;
      own.add(static_cast<uint64_t>(graph.program_of(rank).index()));
      own.add(machine.compute_factor[rank]);
      rank_colour_.push_back(own.value());
    }
    for (const Lane& lane : map.lanes) {
      std::vector<Colour> colours;
      for (size_t i = 0; i < lane.instances; ++i) {
        Fingerprint own;
        own.add(static_cast<uint64_t>(lane.shape_of[i]));
        own.add(lane.own_bound[i].bytes_per_second());
        colours.push_back(own.value());
      }
      lane_colour_.push_back(std::move(colours));
    }
  }

  JobClasses refine() {
    uint64_t classes = count();
    for (;;) {
      colour_instances();
      colour_links();
      colour_ranks();
      const uint64_t now = count();
      if (now == classes) break;
      classes = now;
    }
    JobClasses out;
    out.ranks = partition_of(rank_colour_);
    for (const std::vector<Colour>& colours : lane_colour_) {
      out.lanes.push_back(partition_of(colours));
    }
    out.link_classes = partition_of(link_colour_);
    out.links = std::move(links_);
    return out;
  }

 private:
  // A class never merges again, so an unchanged total means that no class split.
  uint64_t count() const {
    uint64_t total = distinct(rank_colour_) + distinct(link_colour_);
    for (const std::vector<Colour>& colours : lane_colour_) total += distinct(colours);
    return total;
  }

  Colour path_colour(const Lane& lane, size_t instance) const {
    Colour sum = 0;
    for (const Crossing& crossing : lane.path(instance)) {
      sum += contribution(link_colour_[slot_of_link_[crossing.link.index()]],
                          static_cast<uint64_t>(crossing.count));
    }
    return sum;
  }

  void colour_instances() {
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      const Lane& lane = map_.lanes[l];
      std::vector<Colour>& colours = lane_colour_[l];
      if (lane.is_message) {
        for (size_t r = 0; r < lane.instances; ++r) {
          const RankId rank(r);
          const std::vector<ProgramId>& peers = map_.peers[graph_.program_of(rank)];
          if (lane.slot >= peers.size()) continue;
          const RankId peer = graph_.grid.with(rank, Axis::kPp, peers[lane.slot].index());
          colours[r] = mix64(colours[r] + contribution(rank_colour_[r], 1) +
                             contribution(rank_colour_[peer.index()], 2) + path_colour(lane, r));
        }
        continue;
      }
      sums_.assign(lane.instances, 0);
      for (size_t r = 0; r < rank_colour_.size(); ++r) {
        sums_[graph_.grid.group_of(RankId(r), lane.communicator).index()] +=
            contribution(rank_colour_[r], 3);
      }
      for (size_t i = 0; i < lane.instances; ++i) {
        colours[i] = mix64(colours[i] + sums_[i] + path_colour(lane, i));
      }
    }
  }

  void colour_links() {
    sums_.assign(links_.size(), 0);
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      const Lane& lane = map_.lanes[l];
      for (size_t i = 0; i < lane.instances; ++i) {
        const Colour colour = lane_colour_[l][i];
        for (const Crossing& crossing : lane.path(i)) {
          sums_[slot_of_link_[crossing.link.index()]] +=
              contribution(colour, static_cast<uint64_t>(crossing.count) * 16 + l);
        }
      }
    }
    for (size_t i = 0; i < links_.size(); ++i) link_colour_[i] = mix64(link_colour_[i] + sums_[i]);
  }

  void colour_ranks() {
    sums_ = rank_colour_;
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      const Lane& lane = map_.lanes[l];
      for (size_t r = 0; r < rank_colour_.size(); ++r) {
        const RankId rank(r);
        if (!lane.is_message) {
          const size_t group = graph_.grid.group_of(rank, lane.communicator).index();
          sums_[r] += contribution(lane_colour_[l][group], 5 + l);
          continue;
        }
        sums_[r] += contribution(lane_colour_[l][r], 6 + l);
        const std::vector<ProgramId>& peers = map_.peers[graph_.program_of(rank)];
        if (lane.slot >= peers.size()) continue;
        const RankId peer = graph_.grid.with(rank, Axis::kPp, peers[lane.slot].index());
        sums_[peer.index()] += contribution(lane_colour_[l][r], 1000 + l);
      }
    }
    for (size_t r = 0; r < rank_colour_.size(); ++r) rank_colour_[r] = mix64(sums_[r]);
  }

  const OpGraph& graph_;
  const JobMap& map_;
  std::vector<LinkId> links_;
  std::vector<uint32_t> slot_of_link_;
  std::vector<Colour> rank_colour_, link_colour_;
  std::vector<std::vector<Colour>> lane_colour_;
  std::vector<Colour> sums_;
};

}  // namespace

JobClasses classify(const OpGraph& graph, const Machine& machine, const JobMap& map) {
  return Refinement(graph, machine, map).refine();
}

JobClasses no_classes(const OpGraph& graph, const JobMap& map) {
  JobClasses out;
  out.ranks = singletons(graph.grid.ranks());
  for (const Lane& lane : map.lanes) out.lanes.push_back(singletons(lane.instances));
  out.links = crossed_links(map);
  out.link_classes = singletons(out.links.size());
  return out;
}

}  // namespace herdsim

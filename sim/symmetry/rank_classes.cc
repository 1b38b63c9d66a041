#include "sim/symmetry/rank_classes.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

using Colour = uint64_t;

// One neighbour's contribution to a multiset: contributions add up in any order.
Colour contribution(Colour colour, uint64_t role) { return mix64(colour ^ mix64(role)); }

// The same for one role after another, which is nearly always that of the crossing before.
class Contributions {
 public:
  Colour of(Colour colour, uint64_t role) {
    if (role != role_) {
      role_ = role;
      mixed_ = mix64(role);
    }
    return mix64(colour ^ mixed_);
  }

 private:
  uint64_t role_ = 0;
  uint64_t mixed_ = mix64(0);
};

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

// `weight` of a vertex: how many it stands for.
template <class Weight>
Partition partition_of(const std::vector<Colour>& colours, const Weight& weight) {
  Partition partition;
  partition.class_of.reserve(colours.size());
  ColourIndex index;
  for (const Colour colour : colours) {
    const uint32_t number = index.number(colour);
    if (number == partition.representative.size()) {
      partition.representative.push_back(static_cast<uint32_t>(partition.class_of.size()));
      partition.size.push_back(0);
    }
    partition.size[number] += static_cast<uint32_t>(weight(partition.class_of.size()));
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

// Lists the links that transfers cross and says where each is in the list.
void list_crossed_links(const Machine& machine, const JobMap& map, JobClasses& out) {
  size_t end = 0;
  out.first_link = machine.fabric.links().size();
  for (const Lane& lane : map.lanes) {
    for (const LaneCrossing& crossing : lane.crossings) {
      out.first_link = std::min(out.first_link, crossing.link.index());
      end = std::max(end, crossing.link.index() + 1);
    }
  }
  constexpr uint32_t kCrossed = 1;
  out.slot_of_link.assign(end > out.first_link ? end - out.first_link : 0, 0);
  for (const Lane& lane : map.lanes) {
    for (const LaneCrossing& crossing : lane.crossings) {
      out.slot_of_link[crossing.link.index() - out.first_link] = kCrossed;
    }
  }
  for (size_t at = 0; at < out.slot_of_link.size(); ++at) {
    if (out.slot_of_link[at] != kCrossed) continue;
    out.slot_of_link[at] = static_cast<uint32_t>(out.links.size());
    out.links.emplace_back(out.first_link + at);
  }
}

class Refinement {
 public:
  Refinement(const OpGraph& graph, const Machine& machine, const JobMap& map,
             const std::vector<uint64_t>& seen)
      : map_(map) {
    list_crossed_links(machine, map, out_);
    for (const LinkId link : out_.links) {
      links_alike_.push_back(
          static_cast<uint32_t>(map.blocks.links_of(machine.fabric.links()[link].kind)));
      // Links of two kinds may carry the same at the same rate; whoever asks for use by tier tells
      // them apart.
      const auto kind = static_cast<uint64_t>(machine.fabric.links()[link].kind);
      Colour colour =
          contribution(static_cast<uint64_t>(machine.capacity[link].bytes_per_second()), kind);
      if (!seen.empty()) colour = mix64(colour + contribution(seen[link.index()], 7));
      link_colour_.push_back(colour);
    }
    for (const CapacityChange& change : machine.changes) {
      if (!out_.is_crossed(change.link)) continue;
      const uint32_t slot = out_.slot(change.link);
      Fingerprint timed;
      timed.add(link_colour_[slot]);
      timed.add(change.at);
      timed.add(change.capacity.bytes_per_second());
      link_colour_[slot] = timed.value();
    }
    list_neighbours(graph);
    for (size_t r = 0; r < graph.grid.ranks(); r += map.blocks.ranks) {
      const RankId rank(r);
      Fingerprint own;
      own.add(static_cast<uint64_t>(graph.program_of(rank).index()));
      own.add(machine.compute_factor[rank]);
      for (const UnevenLoad& load : graph.uneven) add_share(load, r, own);
      rank_colour_.push_back(own.value());
    }
    for (const Lane& lane : map.lanes) {
      std::vector<Colour> colours;
      for (size_t i = 0; i < lane.listed(); ++i) {
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
    out_.ranks = partition_of(rank_colour_, [&](size_t) { return map_.blocks.ranks; });
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      out_.lanes.push_back(
          partition_of(lane_colour_[l], [&](size_t) { return map_.lanes[l].alike; }));
    }
    out_.link_classes = partition_of(link_colour_, [&](size_t slot) { return links_alike_[slot]; });
    out_.link_colours = std::move(link_colour_);
    return std::move(out_);
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;

  static void add_share(const UnevenLoad& load, size_t rank, Fingerprint& own) {
    if (load.empty()) return;
    const auto first = load.factors.begin() + static_cast<ptrdiff_t>(load.row[rank] * load.columns);
    std::for_each(first, first + static_cast<ptrdiff_t>(load.columns),
                  [&](double factor) { own.add(factor); });
  }

  // For each lane and listed rank: its group, or who receives its messages.
  void list_neighbours(const OpGraph& graph) {
    const size_t block = map_.blocks.ranks;
    for (const Lane& lane : map_.lanes) {
      std::vector<uint32_t> neighbours;
      neighbours.reserve(graph.grid.ranks() / block);
      for (size_t r = 0; r < graph.grid.ranks(); r += block) {
        const RankId rank(r);
        if (!lane.is_message) {
          const CommGroupId group = graph.grid.group_of(rank, lane.communicator);
          neighbours.push_back(static_cast<uint32_t>(group.index() / lane.alike));
          continue;
        }
        const std::vector<ProgramId>& peers = map_.peers[graph.program_of(rank)];
        neighbours.push_back(
            lane.slot < peers.size()
                ? static_cast<uint32_t>(
                      graph.grid.with(rank, Axis::kPp, peers[lane.slot].index()).index() / block)
                : kNobody);
      }
      neighbours_.push_back(std::move(neighbours));
    }
  }

  // A class never merges again, so an unchanged total means that no class split. Transfers need no
  // count: their colours are made of those of ranks and links, so they split no further where those
  // did not.
  uint64_t count() const { return distinct(rank_colour_) + distinct(link_colour_); }

  Colour path_colour(const Lane& lane, size_t instance) const {
    Colour sum = 0;
    Contributions contributions;
    for (const LaneCrossing& crossing : lane.path(instance)) {
      const uint32_t slot = out_.slot(crossing.link);
      sum += contributions.of(link_colour_[slot], crossing.count) *
             lane.links_crossed(links_alike_[slot]);
    }
    return sum;
  }

  void colour_instances() {
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      const Lane& lane = map_.lanes[l];
      std::vector<Colour>& colours = lane_colour_[l];
      if (lane.is_message) {
        for (size_t r = 0; r < lane.listed(); ++r) {
          const uint32_t peer = neighbours_[l][r];
          if (peer == kNobody) continue;
          colours[r] = mix64(colours[r] + contribution(rank_colour_[r], 1) +
                             contribution(rank_colour_[peer], 2) + path_colour(lane, r));
        }
        continue;
      }
      sums_.assign(lane.listed(), 0);
      // A group that is turned in itself holds whole blocks.
      const size_t of_block = map_.blocks.ranks / lane.alike;
      for (size_t r = 0; r < rank_colour_.size(); ++r) {
        sums_[neighbours_[l][r]] += contribution(rank_colour_[r], 3) * of_block;
      }
      for (size_t i = 0; i < lane.listed(); ++i) {
        colours[i] = mix64(colours[i] + sums_[i] + path_colour(lane, i));
      }
    }
  }

  void colour_links() {
    sums_.assign(out_.links.size(), 0);
    Contributions contributions;
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      const Lane& lane = map_.lanes[l];
      for (size_t i = 0; i < lane.listed(); ++i) {
        const Colour colour = lane_colour_[l][i];
        for (const LaneCrossing& crossing : lane.path(i)) {
          const uint32_t slot = out_.slot(crossing.link);
          sums_[slot] += contributions.of(colour, static_cast<uint64_t>(crossing.count) * 16 + l) *
                         lane.crossed_by(links_alike_[slot]);
        }
      }
    }
    for (size_t i = 0; i < sums_.size(); ++i) link_colour_[i] = mix64(link_colour_[i] + sums_[i]);
  }

  void colour_ranks() {
    sums_ = rank_colour_;
    for (size_t l = 0; l < map_.lanes.size(); ++l) {
      const Lane& lane = map_.lanes[l];
      for (size_t r = 0; r < rank_colour_.size(); ++r) {
        const uint32_t neighbour = neighbours_[l][r];
        if (!lane.is_message) {
          sums_[r] += contribution(lane_colour_[l][neighbour], 5 + l);
        } else if (neighbour != kNobody) {
          const Colour colour = lane_colour_[l][r];
          sums_[r] += contribution(colour, 5 + l);
          sums_[neighbour] += contribution(colour, 1000 + l);
        }
      }
    }
    for (size_t r = 0; r < rank_colour_.size(); ++r) rank_colour_[r] = mix64(sums_[r]);
  }

  const JobMap& map_;
  JobClasses out_;
  std::vector<uint32_t> links_alike_;              // by slot: of its orbit
  std::vector<std::vector<uint32_t>> neighbours_;  // by lane and listed rank
  std::vector<Colour> rank_colour_, link_colour_;
  std::vector<std::vector<Colour>> lane_colour_;
  std::vector<Colour> sums_;
};

}  // namespace

JobClasses classify(const OpGraph& graph, const Machine& machine, const JobMap& map,
                    const std::vector<uint64_t>& seen) {
  return Refinement(graph, machine, map, seen).refine();
}

JobClasses no_classes(const OpGraph& graph, const Machine& machine, const JobMap& map) {
  HERDSIM_CHECK(map.blocks.ranks == 1) << "a map of every " << map.blocks.ranks << "th rank";
  JobClasses out;
  out.ranks = singletons(graph.grid.ranks());
  for (const Lane& lane : map.lanes) out.lanes.push_back(singletons(lane.instances));
  list_crossed_links(machine, map, out);
  out.link_classes = singletons(out.links.size());
  return out;
}

}  // namespace herdsim

// Which ranks, links and transfers are interchangeable: the coarsest equitable partition.
//
// Colour refinement (the 1-dimensional Weisfeiler-Leman method): start from what is visible of each vertex alone (a
// rank's program and speed, a link's capacity, a transfer's shape), then colour each by its own colour and the multiset
// of its neighbours' colours until no class splits. Members of a class then have the same number of neighbours of every
// class, so in a deterministic simulation they do the same thing at the same time, and one stands for all. A slow
// GPU or NIC, an uneven placement or a second job only make the partition finer; nothing else knows of folding.
//
// Complexity: O(rounds * (ranks + crossings)); rounds is the distance an asymmetry spreads, 2 or 3 without one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
#include "sim/symmetry/job_map.h"

namespace herdsim {

// A partition of n vertices: classes are numbered by their first member, which represents them.
struct Partition {
  std::vector<uint32_t> class_of;
  std::vector<uint32_t> representative;
  std::vector<uint32_t> size;

  size_t classes() const { return representative.size(); }
};

// Of what the map lists: where blocks of ranks are alike, sizes count all that it stands for.
struct JobClasses {
  Partition ranks;               // listed ones: the first of each block
  std::vector<Partition> lanes;  // listed instances, by lane
  // Links that transfers cross, in ascending order, their place in that list, and their classes.
  std::vector<LinkId> links;
  size_t first_link = 0;               // the lowest of them
  std::vector<uint32_t> slot_of_link;  // by LinkId from that on; meaningless where nothing crosses
  Partition link_classes;              // over `links`
  // Of `links`: what tells one that this job uses one way from one that it uses another way.
  std::vector<uint64_t> link_colours;

  // Requires: something crosses the link.
  uint32_t slot(LinkId link) const { return slot_of_link[link.index() - first_link]; }
  bool is_crossed(LinkId link) const {
    if (link.index() < first_link || link.index() - first_link >= slot_of_link.size()) return false;
    return slot(link) < links.size() && links[slot(link)] == link;
  }
};

// `seen`, by LinkId, tells links apart that nothing in this job does, as other jobs use them; empty: all alike.
JobClasses classify(const OpGraph& graph, const Machine& machine, const JobMap& map,
                    const std::vector<uint64_t>& seen = {});

// Every vertex alone: what --no-fold simulates. Requires: a map that lists every rank.
JobClasses no_classes(const OpGraph& graph, const Machine& machine, const JobMap& map);

}  // namespace herdsim

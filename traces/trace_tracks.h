// The rows of a trace's picture: cluster > critical path, storage, pod > node > rank > streams and
// counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/observe/span.h"

namespace herdsim {

// One row. Its uuid is its place in TrackTree::tracks plus one: Perfetto keeps zero for itself.
struct Track {
  uint64_t parent = 0;  // uuid; 0 for the root
  std::string name;     // numbers padded with zeros, for viewers that sort by name
  int32_t order = 0;    // among its siblings
  bool has_children = false;
  const Counter* counter = nullptr;
};

struct TrackTree {
  std::vector<Track> tracks;  // parents before children
  // uuids, by place of the rank in StepTrace::ranks; 0 where the rank has no span on the stream.
  std::vector<uint64_t> of_rank;
  std::vector<std::array<uint64_t, kStreams>> of_stream;
  std::vector<uint64_t> of_counter;  // by place in StepTrace::counters
  std::vector<uint64_t> of_cluster_span;  // by place in StepTrace::of_cluster; one row a name
  uint64_t critical_path = 0;        // below the root; 0 without one
};

// Custom tracks throughout: children of Perfetto's process and thread tracks become their siblings.
// The result points into `trace`, which must outlive it.
TrackTree track_tree(const StepTrace& trace, bool with_critical_path = false);

// Place of `rank` in trace.ranks. Requires: it is there.
size_t place_of(const StepTrace& trace, RankId rank);

}  // namespace herdsim

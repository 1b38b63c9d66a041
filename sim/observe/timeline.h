// A picture over time in rows that its maker chooses: slices and counters in a tree of tracks. What
// weeks of training are shown as; a step has its own trace (span.h).
//
//   Timeline timeline;
//   const size_t job = timeline.add_track("job");
//   timeline.slices.push_back({.track = job, .begin = t0, .end = t1, .name = "running"});
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/time.h"

namespace herdsim {

struct Timeline {
  static constexpr size_t kRoot = static_cast<size_t>(-1);

  // Siblings are shown in the order they were added. A track with a unit is a counter.
  struct Track {
    std::string name, unit;
    size_t parent = kRoot;
  };
  using Detail = std::pair<std::string, std::variant<double, std::string>>;
  // Of no length: a mark.
  struct Slice {
    size_t track = 0;
    Instant begin, end;
    std::string name;
    std::vector<Detail> details;
  };
  struct Sample {
    size_t track = 0;
    Instant at;
    double value = 0;
  };

  std::vector<Track> tracks;
  std::vector<Slice> slices;  // two of one track are apart or one inside the other
  std::vector<Sample> samples;

  size_t add_track(std::string name, size_t parent = kRoot, std::string unit = "") {
    tracks.push_back({.name = std::move(name), .unit = std::move(unit), .parent = parent});
    return tracks.size() - 1;
  }
};

}  // namespace herdsim

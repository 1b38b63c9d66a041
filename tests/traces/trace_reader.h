// Reads a trace as Perfetto would and reports what Perfetto would silently accept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace_subset.pb.h"

namespace herdsim {

struct ReadSlice {
  int64_t begin_ns = 0, end_ns = 0;
  uint64_t track = 0;
  std::string name;
  std::string category;
  std::map<std::string, double> arguments;
};

struct ReadArrow {
  // The end of the slice that it leaves and the start of the one that it reaches.
  int64_t from_ns = 0, to_ns = 0;
  uint64_t from_track = 0, to_track = 0;
};

struct ReadTrace {
  std::vector<std::string> violations;  // empty for a sound trace
  std::map<uint64_t, perfetto::protos::TrackDescriptor> tracks;
  std::vector<ReadSlice> slices;  // by track, then begin; instants have no length
  std::map<uint64_t, std::vector<std::pair<int64_t, double>>> samples;
  std::vector<ReadArrow> arrows;
  int64_t packets = 0;

  int64_t slice_count() const;
  int64_t instant_count() const;
  int64_t sample_count() const;
  // "cluster: x/pod 0/node 0/..." of a track.
  std::string path(uint64_t track) const;
};

// Checks: every packet parses without unknown fields; sequence flags; every iid defined; every
// track described, once, with a parent described and no cycle; sibling ranks distinct below an
// explicit parent; time never runs back; BEGIN and END balance; no slice of no length inside
// another; counters have counter tracks and nothing else has; every arrow has two ends and does not
// run backwards; compressed packets stay below 512 KiB.
ReadTrace read_trace(const std::string& bytes);

// The packets of a trace with compressed ones unpacked. Violations of the framing are appended.
perfetto::protos::Trace unpacked(const std::string& bytes, std::vector<std::string>& violations);

}  // namespace herdsim

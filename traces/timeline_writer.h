// A timeline as a native Perfetto trace (ui.perfetto.dev), deflated; tracks in the order they were
// added, events in order of time.
//
//   write_timeline_file(campaign_timeline(...), "out/weeks.pftrace");
#pragma once

#include <ostream>
#include <string>

#include "sim/observe/timeline.h"
#include "traces/perfetto_writer.h"

namespace herdsim {

// Requires: parents before children; slices of a track apart or nested; end >= begin.
// Throws: SpecError naming `name` when the stream refuses bytes.
// Complexity: n log n in slices and samples.
PerfettoCounts write_timeline(const Timeline& timeline, std::ostream& out,
                              const std::string& name = "timeline");

// The same to a file, which appears only when it is complete. Throws: SpecError with the path.
PerfettoCounts write_timeline_file(const Timeline& timeline, const std::string& path);

}  // namespace herdsim

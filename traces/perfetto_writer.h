// A simulated step as a Perfetto trace (ui.perfetto.dev, trace_processor).
//
// Rows: cluster > critical path, pod > node > rank > streams, as custom tracks in the order given. The rank's own
// row shows the phase it is in; counters hang below whom they describe, with their unit, and share
// their scale with their namesakes. Arrows join sends to receives. One packet sequence holds
// everything in time order, so that a reader needs no sort.
//
//   const PerfettoCounts counts = write_perfetto_file(trace, "out/step.pftrace");
//
// Perfetto accepts much that is wrong without a word (overlaps, unbalanced slices, a truncated
// file), so the counts returned are what to compare a reader's counts with.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "sim/observe/span.h"
#include "sim/observe/trace_overlay.h"

namespace herdsim {

struct PerfettoOptions {
  // Deflated packets: about a fifth of the size.
  bool compress = true;
  // Bytes, FLOPs, micro-batch and chunk of each span, as arguments. A quarter of an uncompressed
  // file, and more than that of a viewer's memory.
  bool annotations = true;
  // Phase slices on the ranks' own rows.
  bool phases = true;
  // Arrows; the viewer walks the whole graph of a selected slice and many thousands freeze it.
  int64_t max_flows = 4'000;
  // The critical path as a row below the cluster, arrows to kernels that waited, and notes as marks
  // on the cluster's row. Must outlive the call.
  const TraceOverlay* overlay = nullptr;
};

struct PerfettoCounts {
  int64_t tracks = 0;
  int64_t slices = 0;    // pairs of BEGIN and END
  int64_t instants = 0;  // spans of no length and anchors of arrows
  int64_t samples = 0;
  int64_t flows = 0;
  int64_t flows_left_out = 0;
  int64_t packets = 0;  // inside compressed ones
  int64_t raw_bytes = 0;
  int64_t file_bytes = 0;
};

// Requires: first_fault(trace) is empty.
// Throws: SpecError naming `name` when the stream refuses bytes.
// Complexity: linear in spans and samples; 32 bytes of memory an event beside the trace.
PerfettoCounts write_perfetto(const StepTrace& trace, std::ostream& out,
                              const PerfettoOptions& options = {},
                              const std::string& name = "trace");

// The same to a file. It appears under its name only when it is complete: until then it is
// `path`.partial, which is removed on failure. A path that exists and is no regular file (a pipe,
// /dev/stdout) is written directly. Throws: SpecError with the path.
PerfettoCounts write_perfetto_file(const StepTrace& trace, const std::string& path,
                                   const PerfettoOptions& options = {});

// Bytes that the file will have: within a tenth uncompressed, within a factor of two compressed
// where the step repeats itself as training does.
// Complexity: linear in spans and samples, without sorting or encoding.
int64_t estimated_trace_bytes(const StepTrace& trace, const PerfettoOptions& options = {});

}  // namespace herdsim

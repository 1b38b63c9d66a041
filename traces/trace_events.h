// What a trace shows, as events in the order of the file.
//
// Perfetto pairs a BEGIN with the next END of its track and never complains: a BEGIN written before
// the END of the slice before it at the same tick makes the first slice swallow the second. So at
// one tick ENDs come first and BEGINs last, and a span of no length is an instant between the two.
//
// Arrows run from the end of the slice they leave to the start of the slice they reach. A receive
// that is drawn while its data is still under way starts before the send ends, and the arrow would
// run backwards; then the arrow reaches an instant "arrived" at the end of the receive, and where
// even that is too early it leaves an instant "sent" at the start of the send.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/observe/span.h"
#include "sim/observe/trace_overlay.h"
#include "traces/trace_tracks.h"

namespace herdsim {

// In the order of one tick.
enum class EventKind : uint8_t {
  kSpanEnd,
  kPhaseEnd,
  kPathEnd,
  kClusterEnd,
  kSample,
  kSent,         // anchor of an arrow, at the begin of span `item`
  kSpanInstant,  // a span of no length
  kReceiveInstant,
  kArrived,  // anchor of an arrow, at the end of span `item`
  kPhaseBegin,
  kPathBegin,
  kClusterBegin,
  kSpanBegin,
};

struct TraceEvent {
  int64_t at_ns = 0;
  // Place in StepTrace::spans or ::of_cluster, TraceOverlay::critical_path, TraceEvents::phases or
  // ::samples.
  uint32_t item = 0;
  EventKind kind = EventKind::kSpanEnd;
};

// A slice on the rank's own row, so that a folded group still shows the pipeline: consecutive
// compute spans of one phase, micro-batch and chunk. "forward 12 chunk 3"; "micro-batch 12 chunk 3"
// where the phase is unknown. Viewers ignore digits when they choose a colour.
struct Phase {
  size_t place = 0;  // of the rank, in StepTrace::ranks
  Instant begin, end;
  uint32_t name = 0;  // place in TraceEvents::phase_names
};

struct SampleRef {
  uint32_t counter = 0, sample = 0;
};

// An arrow's end: the event it belongs to and the arrow's id.
struct FlowEnd {
  EventKind kind = EventKind::kSpanBegin;
  uint32_t item = 0;
  uint64_t id = 0;
  bool arrives = false;
};

struct TraceEvents {
  std::vector<TraceEvent> events;  // by time, kind, item
  std::vector<std::string> phase_names;
  std::vector<Phase> phases;
  std::vector<SampleRef> samples;
  std::vector<FlowEnd> flow_ends;  // by kind, item, id
  std::vector<uint64_t> track_of_span;
  std::vector<bool> has_arrow;  // by span
  int64_t flows = 0;
  int64_t flows_left_out = 0;  // beyond the limit
};

struct EventChoice {
  bool phases = true;
  int64_t max_flows = 0;
  const TraceOverlay* overlay = nullptr;
};

// Requires: first_fault(trace) is empty.
// An arrow is drawn where send and receive are both traced, and from what a kernel waited for to the
// kernel. Half of the limit is for waits, the longest first; beyond the rest the messages of the
// highest ranks are left out.
// Complexity: linear in spans and samples, n log n in flows.
TraceEvents trace_events(const StepTrace& trace, const TrackTree& tree, const EventChoice& choice);

}  // namespace herdsim

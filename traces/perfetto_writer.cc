#include "traces/perfetto_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "traces/packet_sink.h"
#include "traces/printable_text.h"
#include "traces/proto_encoder.h"
#include "traces/trace_events.h"
#include "traces/trace_tracks.h"

namespace herdsim {
namespace {

// Field numbers of trace_subset.proto.
namespace field {
constexpr uint32_t kTracePacket = 1;
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kInternedData = 12, kSequenceFlags = 13, kPacketDefaults = 59,
                   kTrackDescriptor = 60;
constexpr uint32_t kSnapshotClocks = 1, kSnapshotPrimary = 2, kClockId = 1, kClockTimestamp = 2;
constexpr uint32_t kDefaultsClock = 58;
constexpr uint32_t kInternedCategories = 1, kInternedEvents = 2, kInternedAnnotations = 3,
                   kInternedIid = 1, kInternedName = 2;
constexpr uint32_t kTrackUuid = 1, kTrackName = 2, kTrackParent = 5, kTrackCounter = 8,
                   kTrackChildOrdering = 11, kTrackOrderRank = 12;
constexpr uint32_t kCounterUnitName = 6, kCounterShareKey = 7;
constexpr uint32_t kEventCategory = 3, kEventAnnotation = 4, kEventType = 9, kEventName = 10,
                   kEventTrack = 11, kEventDouble = 44, kEventFlow = 47, kEventTerminatingFlow = 48;
constexpr uint32_t kAnnotationName = 1, kAnnotationInt = 4, kAnnotationDouble = 5;
}  // namespace field

constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterValue = 4;
constexpr uint64_t kOrderedExplicitly = 3;
constexpr uint64_t kBootTime = 6;
constexpr uint64_t kSequence = 1;
constexpr uint64_t kStateCleared = 1, kStateNeeded = 2;

constexpr std::string_view kPhaseCategory = "phase";
constexpr uint64_t kPhaseCategoryIid = kStreams + 1;
constexpr std::array<std::string_view, 4> kAnnotations = {"bytes", "flops", "micro_batch", "chunk"};
constexpr uint64_t kBytesIid = 1, kFlopsIid = 2, kMicroBatchIid = 3, kChunkIid = 4;

class Writer {
 public:
  Writer(const StepTrace& trace, std::ostream& out, const PerfettoOptions& options,
         const std::string& name)
      : trace_(trace),
        options_(options),
        tree_(track_tree(trace)),
        events_(
            trace_events(trace, tree_, {.phases = options.phases, .max_flows = options.max_flows})),
        sink_(out, name, options.compress),
        out_(sink_.packets()) {}

  PerfettoCounts write() {
    write_clock();
    write_defaults_and_names();
    for (size_t i = 0; i < tree_.tracks.size(); ++i) write_track(i + 1, tree_.tracks[i]);
    for (const TraceEvent& event : events_.events) write_event(event);
    sink_.finish();
    counts_.tracks = static_cast<int64_t>(tree_.tracks.size());
    counts_.flows = events_.flows;
    counts_.flows_left_out = events_.flows_left_out;
    counts_.packets = sink_.packet_count();
    counts_.raw_bytes = sink_.raw_bytes();
    counts_.file_bytes = sink_.written_bytes();
    return counts_;
  }

 private:
  size_t open_packet(uint64_t flags) {
    const size_t packet = out_.open(field::kTracePacket);
    out_.varint_field(field::kSequenceId, kSequence);
    out_.varint_field(field::kSequenceFlags, flags);
    return packet;
  }
  void close_packet(size_t packet) {
    out_.close(packet);
    sink_.packet_done();
  }

  // The trace begins at tick 0 of its clock; there is no wall time in a simulation.
  void write_clock() {
    const size_t packet = open_packet(kStateCleared);
    const size_t snapshot = out_.open(field::kClockSnapshot);
    const size_t clock = out_.open(field::kSnapshotClocks);
    out_.varint_field(field::kClockId, kBootTime);
    out_.varint_field(field::kClockTimestamp, 0);
    out_.close(clock);
    out_.varint_field(field::kSnapshotPrimary, kBootTime);
    out_.close(snapshot);
    close_packet(packet);
  }

  void write_interned(uint32_t table, uint64_t iid, std::string_view name) {
    const size_t entry = out_.open(table);
    out_.varint_field(field::kInternedIid, iid);
    out_.bytes_field(field::kInternedName, name);
    out_.close(entry);
  }

  void write_defaults_and_names() {
    const size_t packet = open_packet(kStateCleared | kStateNeeded);
    const size_t defaults = out_.open(field::kPacketDefaults);
    out_.varint_field(field::kDefaultsClock, kBootTime);
    out_.close(defaults);
    const size_t interned = out_.open(field::kInternedData);
    for (size_t i = 0; i < kStreams; ++i)
      write_interned(field::kInternedCategories, i + 1, kStreamNames[i]);
    write_interned(field::kInternedCategories, kPhaseCategoryIid, kPhaseCategory);
    uint64_t iid = 0;
    for (const std::string& name : trace_.names)
      write_interned(field::kInternedEvents, ++iid, printable(name));
    write_interned(field::kInternedEvents, sent_iid_ = ++iid, "sent");
    write_interned(field::kInternedEvents, arrived_iid_ = ++iid, "arrived");
    first_phase_iid_ = iid + 1;
    for (const std::string& name : events_.phase_names)
      write_interned(field::kInternedEvents, ++iid, name);
    for (size_t i = 0; i < kAnnotations.size(); ++i) {
      write_interned(field::kInternedAnnotations, i + 1, kAnnotations[i]);
    }
    out_.close(interned);
    close_packet(packet);
  }

  void write_track(uint64_t uuid, const Track& track) {
    const size_t packet = open_packet(kStateNeeded);
    const size_t descriptor = out_.open(field::kTrackDescriptor);
    out_.varint_field(field::kTrackUuid, uuid);
    out_.bytes_field(field::kTrackName, track.name);
    if (track.parent != 0) out_.varint_field(field::kTrackParent, track.parent);
    if (track.counter != nullptr) {
      const size_t counter = out_.open(field::kTrackCounter);
      out_.bytes_field(field::kCounterUnitName, printable(track.counter->unit));
      out_.bytes_field(field::kCounterShareKey,
                       printable(track.counter->name + " " + track.counter->unit));
      out_.close(counter);
    }
    if (track.has_children) out_.varint_field(field::kTrackChildOrdering, kOrderedExplicitly);
    out_.int_field(field::kTrackOrderRank, track.order);
    out_.close(descriptor);
    close_packet(packet);
  }

  void write_annotation(uint64_t iid, int64_t value) {
    const size_t annotation = out_.open(field::kEventAnnotation);
    out_.varint_field(field::kAnnotationName, iid);
    out_.int_field(field::kAnnotationInt, value);
    out_.close(annotation);
  }

  void write_annotations(const Span& span) {
    if (span.bytes.count() > 0) write_annotation(kBytesIid, span.bytes.count());
    if (span.flops.count() > 0) {
      const size_t annotation = out_.open(field::kEventAnnotation);
      out_.varint_field(field::kAnnotationName, kFlopsIid);
      out_.double_field(field::kAnnotationDouble, span.flops.count());
      out_.close(annotation);
    }
    if (span.micro_batch >= 0) write_annotation(kMicroBatchIid, span.micro_batch);
    if (span.chunk >= 0) write_annotation(kChunkIid, span.chunk);
  }

  void write_flows(const TraceEvent& event) {
    const auto before = [](const FlowEnd& end, const TraceEvent& e) {
      return std::tie(end.kind, end.item) < std::tie(e.kind, e.item);
    };
    auto end = std::lower_bound(events_.flow_ends.begin(), events_.flow_ends.end(), event, before);
    for (; end != events_.flow_ends.end() && end->kind == event.kind && end->item == event.item;
         ++end) {
      out_.fixed64_field(end->arrives ? field::kEventTerminatingFlow : field::kEventFlow, end->id);
    }
  }

  void write_span_start(const TraceEvent& event, uint64_t type) {
    const Span& span = trace_.spans[event.item];
    out_.varint_field(field::kEventCategory, static_cast<uint64_t>(span.stream) + 1);
    if (options_.annotations) write_annotations(span);
    out_.varint_field(field::kEventType, type);
    out_.varint_field(field::kEventName, span.name + uint64_t{1});
    out_.varint_field(field::kEventTrack, events_.track_of_span[event.item]);
    if (span.flow != 0) write_flows(event);
    ++(type == kSliceBegin ? counts_.slices : counts_.instants);
  }

  void write_anchor(const TraceEvent& event, uint64_t name) {
    out_.varint_field(field::kEventType, kInstant);
    out_.varint_field(field::kEventName, name);
    out_.varint_field(field::kEventTrack, events_.track_of_span[event.item]);
    write_flows(event);
    ++counts_.instants;
  }

  void write_phase_begin(const Phase& phase) {
    out_.varint_field(field::kEventCategory, kPhaseCategoryIid);
    out_.varint_field(field::kEventType, kSliceBegin);
    out_.varint_field(field::kEventName, first_phase_iid_ + phase.name);
    out_.varint_field(field::kEventTrack, tree_.of_rank[phase.place]);
    ++counts_.slices;
  }

  void write_end(uint64_t track) {
    out_.varint_field(field::kEventType, kSliceEnd);
    out_.varint_field(field::kEventTrack, track);
  }

  void write_sample(const SampleRef& ref) {
    out_.varint_field(field::kEventType, kCounterValue);
    out_.varint_field(field::kEventTrack, tree_.of_counter[ref.counter]);
    out_.double_field(field::kEventDouble, trace_.counters[ref.counter].samples[ref.sample].value);
    ++counts_.samples;
  }

  void write_body(const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::kSpanEnd:
        return write_end(events_.track_of_span[event.item]);
      case EventKind::kPhaseEnd:
        return write_end(tree_.of_rank[events_.phases[event.item].place]);
      case EventKind::kSample:
        return write_sample(events_.samples[event.item]);
      case EventKind::kSent:
        return write_anchor(event, sent_iid_);
      case EventKind::kSpanInstant:
      case EventKind::kReceiveInstant:
        return write_span_start(event, kInstant);
      case EventKind::kArrived:
        return write_anchor(event, arrived_iid_);
      case EventKind::kPhaseBegin:
        return write_phase_begin(events_.phases[event.item]);
      case EventKind::kSpanBegin:
        return write_span_start(event, kSliceBegin);
    }
  }

  void write_event(const TraceEvent& event) {
    const size_t packet = open_packet(kStateNeeded);
    out_.varint_field(field::kTimestamp, static_cast<uint64_t>(event.at_ns));
    const size_t body = out_.open(field::kTrackEvent);
    write_body(event);
    out_.close(body);
    close_packet(packet);
  }

  const StepTrace& trace_;
  const PerfettoOptions& options_;
  TrackTree tree_;
  TraceEvents events_;
  PacketSink sink_;
  ProtoEncoder& out_;
  PerfettoCounts counts_;
  uint64_t sent_iid_ = 0, arrived_iid_ = 0, first_phase_iid_ = 0;
};

// The fault of `path` that errno tells of.
SpecError file_error(const std::string& path, const std::string& what) {
  return SpecError({{.file = path, .problem = fmt::format("{}: {}", what, std::strerror(errno))}});
}

PerfettoCounts write_to(const StepTrace& trace, const std::string& target, const std::string& path,
                        const PerfettoOptions& options) {
  errno = 0;
  std::ofstream out(target, std::ios::binary | std::ios::trunc);
  if (!out) throw file_error(path, "the trace cannot be written");
  const PerfettoCounts counts = write_perfetto(trace, out, options, path);
  errno = 0;
  out.close();
  if (!out) throw file_error(path, "the trace is incomplete");
  return counts;
}

}  // namespace

PerfettoCounts write_perfetto(const StepTrace& trace, std::ostream& out,
                              const PerfettoOptions& options, const std::string& name) {
  const std::string fault = first_fault(trace);
  HERDSIM_CHECK(fault.empty()) << fault;
  return Writer(trace, out, options, name).write();
}

PerfettoCounts write_perfetto_file(const StepTrace& trace, const std::string& path,
                                   const PerfettoOptions& options) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw SpecError({{.file = path, .problem = "is a directory"}});
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    return write_to(trace, path, path, options);
  }
  const std::string partial = path + ".partial";
  try {
    const PerfettoCounts counts = write_to(trace, partial, path, options);
    std::error_code renamed;
    fs::rename(partial, path, renamed);
    if (renamed)
      throw SpecError({{.file = path, .problem = "cannot be replaced: " + renamed.message()}});
    return counts;
  } catch (...) {
    fs::remove(partial, ignored);
    throw;
  }
}

}  // namespace herdsim

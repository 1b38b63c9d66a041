#include "traces/perfetto_writer.h"

#include <algorithm>
#include <tuple>

#include "sim/base/check.h"
#include "traces/packet_sink.h"
#include "traces/perfetto_packets.h"
#include "traces/printable_text.h"
#include "traces/proto_encoder.h"
#include "traces/trace_events.h"
#include "traces/trace_file.h"
#include "traces/trace_tracks.h"

namespace herdsim {
namespace {

constexpr std::string_view kPhaseCategory = "phase";
constexpr uint64_t kPhaseCategoryIid = kStreams + 1;
constexpr std::string_view kPathCategory = "critical path";
constexpr uint64_t kPathCategoryIid = kStreams + 2;
constexpr std::array<std::string_view, 5> kAnnotations = {"bytes", "flops", "micro_batch", "chunk",
                                                          "rank"};
constexpr uint64_t kBytesIid = 1, kFlopsIid = 2, kMicroBatchIid = 3, kChunkIid = 4, kRankIid = 5;

constexpr uint64_t kClusterTrack = 1;  // the root is the first of TrackTree::tracks

class Writer {
 public:
  Writer(const StepTrace& trace, std::ostream& out, const PerfettoOptions& options,
         const std::string& name)
      : trace_(trace),
        options_(options),
        overlay_(options.overlay),
        tree_(track_tree(trace, overlay_ != nullptr && !overlay_->critical_path.empty())),
        events_(trace_events(trace, tree_,
                             {.phases = options.phases,
                              .max_flows = options.max_flows,
                              .overlay = overlay_})),
        sink_(out, name, options.compress),
        out_(sink_.packets()),
        packets_(sink_) {}

  PerfettoCounts write() {
    packets_.write_clock();
    write_defaults_and_names();
    for (size_t i = 0; i < tree_.tracks.size(); ++i) write_track(i + 1, tree_.tracks[i]);
    write_notes();
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
  size_t open_packet(uint64_t flags) { return packets_.open(flags); }
  void close_packet(size_t packet) { packets_.close(packet); }
  void write_interned(uint32_t table, uint64_t iid, std::string_view name) {
    packets_.write_interned(table, iid, name);
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
    if (overlay_ != nullptr)
      write_interned(field::kInternedCategories, kPathCategoryIid, kPathCategory);
    uint64_t iid = 0;
    for (const std::string& name : trace_.names)
      write_interned(field::kInternedEvents, ++iid, printable(name));
    write_interned(field::kInternedEvents, sent_iid_ = ++iid, "sent");
    write_interned(field::kInternedEvents, arrived_iid_ = ++iid, "arrived");
    first_phase_iid_ = iid + 1;
    for (const std::string& name : events_.phase_names)
      write_interned(field::kInternedEvents, ++iid, name);
    first_cluster_iid_ = iid + 1;
    for (const ClusterSpan& span : trace_.of_cluster)
      write_interned(field::kInternedEvents, ++iid, printable(span.name));
    first_path_iid_ = iid + 1;
    if (overlay_ != nullptr) {
      for (const std::string& name : overlay_->names)
        write_interned(field::kInternedEvents, ++iid, printable(name));
      first_note_iid_ = iid + 1;
      for (const std::string& note : overlay_->notes)
        write_interned(field::kInternedEvents, ++iid, printable(note));
    }
    for (size_t i = 0; i < kAnnotations.size() - (overlay_ == nullptr ? 1 : 0); ++i) {
      write_interned(field::kInternedAnnotations, i + 1, kAnnotations[i]);
    }
    out_.close(interned);
    close_packet(packet);
  }

  void write_track(uint64_t uuid, const Track& track) {
    const bool counts = track.counter != nullptr;
    packets_.write_track(uuid, track.parent, track.name, track.order, track.has_children,
                         counts ? &track.counter->unit : nullptr,
                         counts ? track.counter->name + " " + track.counter->unit : "");
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
    if (events_.has_arrow[event.item]) write_flows(event);
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

  void write_path_begin(const PathSpan& span) {
    out_.varint_field(field::kEventCategory, kPathCategoryIid);
    if (options_.annotations) {
      write_annotation(kRankIid, static_cast<int64_t>(span.rank.index()));
      if (span.micro_batch >= 0) write_annotation(kMicroBatchIid, span.micro_batch);
      if (span.chunk >= 0) write_annotation(kChunkIid, span.chunk);
    }
    out_.varint_field(field::kEventType, kSliceBegin);
    out_.varint_field(field::kEventName, first_path_iid_ + span.name);
    out_.varint_field(field::kEventTrack, tree_.critical_path);
    ++counts_.slices;
  }

  void write_cluster_begin(size_t item) {
    if (options_.annotations) write_annotation(kBytesIid, trace_.of_cluster[item].bytes.count());
    out_.varint_field(field::kEventType, kSliceBegin);
    out_.varint_field(field::kEventName, first_cluster_iid_ + item);
    out_.varint_field(field::kEventTrack, tree_.of_cluster_span[item]);
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
      case EventKind::kPathEnd:
        return write_end(tree_.critical_path);
      case EventKind::kClusterEnd:
        return write_end(tree_.of_cluster_span[event.item]);
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
      case EventKind::kPathBegin:
        return write_path_begin(overlay_->critical_path[event.item]);
      case EventKind::kClusterBegin:
        return write_cluster_begin(event.item);
      case EventKind::kSpanBegin:
        return write_span_start(event, kSliceBegin);
    }
  }

  template <class Body>
  void write_at(int64_t at_ns, Body write) {
    const size_t packet = open_packet(kStateNeeded);
    out_.varint_field(field::kTimestamp, static_cast<uint64_t>(at_ns));
    const size_t body = out_.open(field::kTrackEvent);
    write();
    out_.close(body);
    close_packet(packet);
  }

  void write_event(const TraceEvent& event) {
    write_at(event.at_ns, [&] { write_body(event); });
  }

  // On the row of the cluster, where the step begins.
  void write_notes() {
    for (size_t i = 0; overlay_ != nullptr && i < overlay_->notes.size(); ++i) {
      write_at(0, [&] {
        out_.varint_field(field::kEventType, kInstant);
        out_.varint_field(field::kEventName, first_note_iid_ + i);
        out_.varint_field(field::kEventTrack, kClusterTrack);
      });
      ++counts_.instants;
    }
  }

  const StepTrace& trace_;
  const PerfettoOptions& options_;
  const TraceOverlay* overlay_;
  TrackTree tree_;
  TraceEvents events_;
  PacketSink sink_;
  ProtoEncoder& out_;
  PacketWriter packets_;
  PerfettoCounts counts_;
  uint64_t sent_iid_ = 0, arrived_iid_ = 0, first_phase_iid_ = 0, first_cluster_iid_ = 0,
           first_path_iid_ = 0, first_note_iid_ = 0;
};

// A path that overlaps itself, or names that are not there, would be read without a word.
void check_overlay(const StepTrace& trace, const TraceOverlay& overlay) {
  Instant free;
  for (const PathSpan& span : overlay.critical_path) {
    HERDSIM_CHECK(free <= span.begin && span.begin < span.end && span.name < overlay.names.size())
        << "the critical path at " << span.begin.nanoseconds() << " ns";
    free = span.end;
  }
  for (const WaitArrow& wait : overlay.waits) {
    HERDSIM_CHECK(std::max(wait.from, wait.to) < trace.spans.size() &&
                  trace.spans[wait.from].end <= trace.spans[wait.to].begin)
        << "a wait of span " << wait.to << " for span " << wait.from;
  }
}

}  // namespace

PerfettoCounts write_perfetto(const StepTrace& trace, std::ostream& out,
                              const PerfettoOptions& options, const std::string& name) {
  const std::string fault = first_fault(trace);
  HERDSIM_CHECK(fault.empty()) << fault;
  if (options.overlay != nullptr) check_overlay(trace, *options.overlay);
  return Writer(trace, out, options, name).write();
}

PerfettoCounts write_perfetto_file(const StepTrace& trace, const std::string& path,
                                   const PerfettoOptions& options) {
  PerfettoCounts counts;
  write_trace_file(path,
                   [&](std::ostream& out) { counts = write_perfetto(trace, out, options, path); });
  return counts;
}

}  // namespace herdsim

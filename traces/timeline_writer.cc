#include "traces/timeline_writer.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/check.h"
#include "traces/packet_sink.h"
#include "traces/perfetto_packets.h"
#include "traces/printable_text.h"
#include "traces/trace_file.h"

namespace herdsim {
namespace {

// In the order of one tick: a BEGIN before the END of its neighbour would swallow it.
enum class Kind : uint8_t { kEnd, kSample, kMark, kBegin };

struct Event {
  int64_t at_ns = 0;
  Kind kind = Kind::kEnd;
  // Of two slices that end together the inner one, which began later, ends first; of two that begin
  // together the longer one begins first.
  int64_t tie = 0;
  size_t item = 0;
};

// Interned names, numbered from one.
class Names {
 public:
  uint64_t iid(const std::string& name) {
    return ids_.try_emplace(name, ids_.size() + 1).first->second;
  }
  const std::map<std::string, uint64_t>& all() const { return ids_; }

 private:
  std::map<std::string, uint64_t> ids_;
};

class TimelineWriter {
 public:
  TimelineWriter(const Timeline& timeline, std::ostream& out, const std::string& name)
      : timeline_(timeline), sink_(out, name, true), out_(sink_.packets()), packets_(sink_) {}

  PerfettoCounts write() {
    packets_.write_clock();
    write_names();
    write_tracks();
    for (const Event& event : sorted_events()) write_event(event);
    sink_.finish();
    counts_.tracks = static_cast<int64_t>(timeline_.tracks.size());
    counts_.packets = sink_.packet_count();
    counts_.raw_bytes = sink_.raw_bytes();
    counts_.file_bytes = sink_.written_bytes();
    return counts_;
  }

 private:
  void write_names() {
    for (const Timeline::Slice& slice : timeline_.slices) {
      names_.iid(slice.name);
      for (const Timeline::Detail& detail : slice.details) details_.iid(detail.first);
    }
    const size_t packet = packets_.open(kStateCleared | kStateNeeded);
    const size_t defaults = out_.open(field::kPacketDefaults);
    out_.varint_field(field::kDefaultsClock, kBootTime);
    out_.close(defaults);
    const size_t interned = out_.open(field::kInternedData);
    for (const auto& [name, iid] : names_.all())
      packets_.write_interned(field::kInternedEvents, iid, printable(name));
    for (const auto& [name, iid] : details_.all())
      packets_.write_interned(field::kInternedAnnotations, iid, printable(name));
    out_.close(interned);
    packets_.close(packet);
  }

  void write_tracks() {
    std::vector<bool> has_children(timeline_.tracks.size());
    for (const Timeline::Track& track : timeline_.tracks) {
      if (track.parent != Timeline::kRoot) has_children[track.parent] = true;
    }
    for (size_t i = 0; i < timeline_.tracks.size(); ++i) {
      const Timeline::Track& track = timeline_.tracks[i];
      HERDSIM_CHECK(track.parent == Timeline::kRoot || track.parent < i) << track.name;
      packets_.write_track(i + 1, track.parent == Timeline::kRoot ? 0 : track.parent + 1,
                           printable(track.name), static_cast<int32_t>(i), has_children[i],
                           track.unit.empty() ? nullptr : &track.unit,
                           track.name + " " + track.unit);
    }
  }

  std::vector<Event> sorted_events() const {
    std::vector<Event> events;
    events.reserve(2 * timeline_.slices.size() + timeline_.samples.size());
    for (size_t i = 0; i < timeline_.slices.size(); ++i) {
      const int64_t begin = timeline_.slices[i].begin.nanoseconds();
      const int64_t end = timeline_.slices[i].end.nanoseconds();
      HERDSIM_CHECK(end >= begin) << timeline_.slices[i].name;
      if (begin == end) {
        events.push_back({begin, Kind::kMark, 0, i});
        continue;
      }
      events.push_back({begin, Kind::kBegin, -end, i});
      events.push_back({end, Kind::kEnd, -begin, i});
    }
    for (size_t i = 0; i < timeline_.samples.size(); ++i)
      events.push_back({timeline_.samples[i].at.nanoseconds(), Kind::kSample, 0, i});
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::tie(a.at_ns, a.kind, a.tie) < std::tie(b.at_ns, b.kind, b.tie);
    });
    return events;
  }

  void write_details(const Timeline::Slice& slice) {
    for (const auto& [name, value] : slice.details) {
      const size_t annotation = out_.open(field::kEventAnnotation);
      out_.varint_field(field::kAnnotationName, details_.iid(name));
      if (const double* number = std::get_if<double>(&value)) {
        out_.double_field(field::kAnnotationDouble, *number);
      } else {
        out_.bytes_field(field::kAnnotationString, printable(std::get<std::string>(value)));
      }
      out_.close(annotation);
    }
  }

  void write_body(const Event& event) {
    if (event.kind == Kind::kSample) {
      const Timeline::Sample& sample = timeline_.samples[event.item];
      out_.varint_field(field::kEventType, kCounterValue);
      out_.varint_field(field::kEventTrack, sample.track + 1);
      out_.double_field(field::kEventDouble, sample.value);
      ++counts_.samples;
      return;
    }
    const Timeline::Slice& slice = timeline_.slices[event.item];
    if (event.kind != Kind::kEnd) write_details(slice);
    out_.varint_field(field::kEventType, event.kind == Kind::kBegin ? kSliceBegin
                                         : event.kind == Kind::kEnd ? kSliceEnd
                                                                    : kInstant);
    if (event.kind != Kind::kEnd) out_.varint_field(field::kEventName, names_.iid(slice.name));
    out_.varint_field(field::kEventTrack, slice.track + 1);
    if (event.kind == Kind::kBegin) ++counts_.slices;
    if (event.kind == Kind::kMark) ++counts_.instants;
  }

  void write_event(const Event& event) {
    const size_t packet = packets_.open(kStateNeeded);
    out_.varint_field(field::kTimestamp, static_cast<uint64_t>(event.at_ns));
    const size_t body = out_.open(field::kTrackEvent);
    write_body(event);
    out_.close(body);
    packets_.close(packet);
  }

  const Timeline& timeline_;
  PacketSink sink_;
  ProtoEncoder& out_;
  PacketWriter packets_;
  Names names_, details_;
  PerfettoCounts counts_;
};

}  // namespace

PerfettoCounts write_timeline(const Timeline& timeline, std::ostream& out,
                              const std::string& name) {
  return TimelineWriter(timeline, out, name).write();
}

PerfettoCounts write_timeline_file(const Timeline& timeline, const std::string& path) {
  PerfettoCounts counts;
  write_trace_file(path, [&](std::ostream& out) { counts = write_timeline(timeline, out, path); });
  return counts;
}

}  // namespace herdsim

#include "tests/traces/trace_reader.h"

#include <google/protobuf/unknown_field_set.h>
#include <zlib.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace herdsim {
namespace {

using perfetto::protos::InternedName;
using perfetto::protos::Trace;
using perfetto::protos::TracePacket;
using perfetto::protos::TrackDescriptor;
using perfetto::protos::TrackEvent;

bool has_unknown_fields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  if (!reflection->GetUnknownFields(message).empty()) return true;
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const auto& nested = field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                : reflection->GetMessage(message, field);
      if (has_unknown_fields(nested)) return true;
    }
  }
  return false;
}

std::string inflated(const std::string& bytes, std::vector<std::string>& violations) {
  std::string out(4u << 20, '\0');
  uLongf size = out.size();
  const int status = uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (status != Z_OK) violations.push_back("a compressed packet does not inflate");
  out.resize(status == Z_OK ? size : 0);
  return out;
}

class Reader {
 public:
  ReadTrace read(const std::string& bytes) {
    const Trace trace = unpacked(bytes, out_.violations);
    if (has_unknown_fields(trace)) complain("unknown fields");
    out_.packets = trace.packet_size();
    for (const TracePacket& packet : trace.packet()) read_packet(packet);
    finish();
    return std::move(out_);
  }

 private:
  struct Open {
    std::vector<ReadSlice> slices;
    std::vector<std::vector<uint64_t>> flows_out;
  };
  struct FlowSource {
    int64_t end_ns = -1;
    uint64_t track = 0;
  };

  void complain(const std::string& what) { out_.violations.push_back(what); }

  void read_packet(const TracePacket& packet) {
    if (packet.trusted_packet_sequence_id() == 0) complain("a packet without sequence");
    if ((packet.sequence_flags() & 1u) != 0) cleared_ = true;
    if ((packet.sequence_flags() & 2u) != 0 && !cleared_)
      complain("state needed before it was cleared");
    if (packet.has_trace_packet_defaults())
      has_clock_ = packet.trace_packet_defaults().timestamp_clock_id() == 6;
    read_names(packet.interned_data().event_categories(), categories_);
    read_names(packet.interned_data().event_names(), names_);
    read_names(packet.interned_data().debug_annotation_names(), annotations_);
    if (packet.has_track_descriptor()) read_track(packet.track_descriptor());
    if (!packet.has_track_event()) return;
    if ((packet.sequence_flags() & 2u) == 0) complain("an event that does not say it needs state");
    if (!packet.has_timestamp() || !has_clock_) complain("an event without time or clock");
    const auto at = static_cast<int64_t>(packet.timestamp());
    if (at < now_) complain("time runs back to " + std::to_string(at));
    now_ = at;
    read_event(packet.track_event());
  }

  template <class Entries>
  void read_names(const Entries& entries, std::map<uint64_t, std::string>& table) {
    for (const InternedName& entry : entries) {
      if (entry.iid() == 0) complain("an interned name with iid 0");
      if (!table.emplace(entry.iid(), entry.name()).second) complain("an iid defined twice");
    }
  }

  std::string name_of(const std::map<uint64_t, std::string>& table, uint64_t iid) {
    const auto found = table.find(iid);
    if (found != table.end()) return found->second;
    complain("iid " + std::to_string(iid) + " is not defined");
    return "";
  }

  void read_track(const TrackDescriptor& track) {
    if (track.uuid() == 0) complain("a track with uuid 0");
    if (track.name().empty()) complain("a track without name");
    if (!out_.tracks.emplace(track.uuid(), track).second) complain("a track described twice");
  }

  void read_event(const TrackEvent& event) {
    const auto track = out_.tracks.find(event.track_uuid());
    if (track == out_.tracks.end()) return complain("an event on an undescribed track");
    const bool is_sample = event.type() == TrackEvent::TYPE_COUNTER;
    if (is_sample != track->second.has_counter()) complain("event and track differ in kind");
    switch (event.type()) {
      case TrackEvent::TYPE_COUNTER:
        if (!event.has_double_counter_value()) complain("a sample without value");
        out_.samples[event.track_uuid()].emplace_back(now_, event.double_counter_value());
        return;
      case TrackEvent::TYPE_SLICE_BEGIN:
        return begin_slice(event);
      case TrackEvent::TYPE_SLICE_END:
        return end_slice(event);
      case TrackEvent::TYPE_INSTANT:
        begin_slice(event);
        return end_slice(event);
      case TrackEvent::TYPE_UNSPECIFIED:
        return complain("an event without type");
    }
  }

  void begin_slice(const TrackEvent& event) {
    ReadSlice slice{
        .begin_ns = now_, .track = event.track_uuid(), .name = name_of(names_, event.name_iid())};
    for (const uint64_t iid : event.category_iids()) slice.category = name_of(categories_, iid);
    for (const auto& annotation : event.debug_annotations()) {
      slice.arguments[name_of(annotations_, annotation.name_iid())] =
          annotation.has_int_value() ? static_cast<double>(annotation.int_value())
                                     : annotation.double_value();
    }
    for (const uint64_t id : event.flow_ids()) {
      if (!sources_.emplace(id, FlowSource{.track = event.track_uuid()}).second)
        complain("a flow that starts twice");
    }
    for (const uint64_t id : event.terminating_flow_ids()) {
      if (sources_.count(id) == 0) complain("a flow that ends before it starts");
      if (!targets_.emplace(id, std::pair(now_, event.track_uuid())).second)
        complain("a flow that ends twice");
    }
    Open& open = open_[event.track_uuid()];
    open.slices.push_back(std::move(slice));
    open.flows_out.emplace_back(event.flow_ids().begin(), event.flow_ids().end());
  }

  void end_slice(const TrackEvent& event) {
    Open& open = open_[event.track_uuid()];
    if (open.slices.empty()) return complain("an END without BEGIN");
    ReadSlice slice = std::move(open.slices.back());
    slice.end_ns = now_;
    for (const uint64_t id : open.flows_out.back()) sources_[id].end_ns = now_;
    open.slices.pop_back();
    open.flows_out.pop_back();
    if (!open.slices.empty() && slice.begin_ns == slice.end_ns)
      complain("a nested slice of no length");
    out_.slices.push_back(std::move(slice));
  }

  void finish() {
    for (const auto& [track, open] : open_) {
      if (!open.slices.empty()) complain("a BEGIN without END on " + out_.path(track));
    }
    check_tree();
    for (const auto& [id, source] : sources_) {
      const auto target = targets_.find(id);
      if (target == targets_.end()) {
        complain("a flow that never ends");
        continue;
      }
      out_.arrows.push_back(
          {source.end_ns, target->second.first, source.track, target->second.second});
      if (source.end_ns > target->second.first) complain("an arrow that runs backwards");
    }
    std::stable_sort(
        out_.slices.begin(), out_.slices.end(), [](const ReadSlice& a, const ReadSlice& b) {
          return std::tie(a.track, a.begin_ns, a.end_ns) < std::tie(b.track, b.begin_ns, b.end_ns);
        });
  }

  void check_tree() {
    std::map<uint64_t, std::set<int32_t>> ranks;
    std::map<uint64_t, std::set<std::string>> names;
    for (const auto& [uuid, track] : out_.tracks) {
      std::set<uint64_t> seen;
      for (uint64_t at = uuid; at != 0; at = out_.tracks[at].parent_uuid()) {
        if (out_.tracks.count(at) == 0) return complain("a parent that is not described");
        if (!seen.insert(at).second) return complain("a cycle of parents");
      }
      if (track.parent_uuid() == 0) continue;
      if (out_.tracks[track.parent_uuid()].child_ordering() != TrackDescriptor::EXPLICIT) {
        complain("a parent that does not order its children");
      }
      if (!ranks[track.parent_uuid()].insert(track.sibling_order_rank()).second)
        complain("siblings of one rank");
      // Perfetto draws siblings of one name as one row.
      if (!names[track.parent_uuid()].insert(track.name()).second) complain("siblings of one name");
    }
  }

  ReadTrace out_;
  bool cleared_ = false, has_clock_ = false;
  int64_t now_ = 0;
  std::map<uint64_t, std::string> categories_, names_, annotations_;
  std::map<uint64_t, Open> open_;
  std::map<uint64_t, FlowSource> sources_;
  std::map<uint64_t, std::pair<int64_t, uint64_t>> targets_;
};

}  // namespace

int64_t ReadTrace::instant_count() const {
  return std::count_if(slices.begin(), slices.end(),
                       [](const ReadSlice& s) { return s.begin_ns == s.end_ns; });
}

int64_t ReadTrace::slice_count() const {
  return static_cast<int64_t>(slices.size()) - instant_count();
}

int64_t ReadTrace::sample_count() const {
  int64_t count = 0;
  for (const auto& [track, values] : samples) count += static_cast<int64_t>(values.size());
  return count;
}

std::string ReadTrace::path(uint64_t track) const {
  const TrackDescriptor& descriptor = tracks.at(track);
  return descriptor.parent_uuid() == 0 ? descriptor.name()
                                       : path(descriptor.parent_uuid()) + "/" + descriptor.name();
}

Trace unpacked(const std::string& bytes, std::vector<std::string>& violations) {
  Trace outer, all;
  if (!outer.ParseFromString(bytes)) violations.push_back("the file does not parse");
  for (TracePacket& packet : *outer.mutable_packet()) {
    if (!packet.has_compressed_packets()) {
      *all.add_packet() = std::move(packet);
      continue;
    }
    if (packet.ByteSizeLong() >= (512u << 10))
      violations.push_back("a compressed packet of 512 KiB or more");
    Trace inner;
    if (!inner.ParseFromString(inflated(packet.compressed_packets(), violations))) {
      violations.push_back("a compressed packet does not parse");
    }
    all.MergeFrom(inner);
  }
  return all;
}

ReadTrace read_trace(const std::string& bytes) { return Reader().read(bytes); }

}  // namespace herdsim

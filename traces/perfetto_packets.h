// The numbers of Perfetto's trace schema that are written, as trace_subset.proto states them, and
// the packets that every trace of ours begins with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/packet_sink.h"

namespace herdsim {

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
constexpr uint32_t kAnnotationName = 1, kAnnotationInt = 4, kAnnotationDouble = 5,
                   kAnnotationString = 6;
}  // namespace field

constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterValue = 4;
constexpr uint64_t kOrderedExplicitly = 3;
constexpr uint64_t kBootTime = 6;
constexpr uint64_t kSequence = 1;
constexpr uint64_t kStateCleared = 1, kStateNeeded = 2;

// Packets of the one sequence of a trace.
class PacketWriter {
 public:
  // Must outlive this object.
  explicit PacketWriter(PacketSink& sink) : sink_(sink), out_(sink.packets()) {}

  size_t open(uint64_t flags) {
    const size_t packet = out_.open(field::kTracePacket);
    out_.varint_field(field::kSequenceId, kSequence);
    out_.varint_field(field::kSequenceFlags, flags);
    return packet;
  }
  void close(size_t packet) {
    out_.close(packet);
    sink_.packet_done();
  }
  // The trace begins at tick 0 of its clock; there is no wall time in a simulation.
  void write_clock();
  void write_interned(uint32_t table, uint64_t iid, std::string_view name);
  // `parent` 0: a root. A unit makes it a counter, which shares its scale with its namesakes.
  void write_track(uint64_t uuid, uint64_t parent, std::string_view name, int32_t order,
                   bool has_children, const std::string* unit, const std::string& share_key);

 private:
  PacketSink& sink_;
  ProtoEncoder& out_;
};

}  // namespace herdsim

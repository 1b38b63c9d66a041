#include "traces/perfetto_packets.h"

#include "traces/printable_text.h"

namespace herdsim {

void PacketWriter::write_clock() {
  const size_t packet = open(kStateCleared);
  const size_t snapshot = out_.open(field::kClockSnapshot);
  const size_t clock = out_.open(field::kSnapshotClocks);
  out_.varint_field(field::kClockId, kBootTime);
  out_.varint_field(field::kClockTimestamp, 0);
  out_.close(clock);
  out_.varint_field(field::kSnapshotPrimary, kBootTime);
  out_.close(snapshot);
  close(packet);
}

void PacketWriter::write_interned(uint32_t table, uint64_t iid, std::string_view name) {
  const size_t entry = out_.open(table);
  out_.varint_field(field::kInternedIid, iid);
  out_.bytes_field(field::kInternedName, name);
  out_.close(entry);
}

void PacketWriter::write_track(uint64_t uuid, uint64_t parent, std::string_view name, int32_t order,
                               bool has_children, const std::string* unit,
                               const std::string& share_key) {
  const size_t packet = open(kStateNeeded);
  const size_t descriptor = out_.open(field::kTrackDescriptor);
  out_.varint_field(field::kTrackUuid, uuid);
  out_.bytes_field(field::kTrackName, name);
  if (parent != 0) out_.varint_field(field::kTrackParent, parent);
  if (unit != nullptr) {
    const size_t counter = out_.open(field::kTrackCounter);
    out_.bytes_field(field::kCounterUnitName, printable(*unit));
    out_.bytes_field(field::kCounterShareKey, printable(share_key));
    out_.close(counter);
  }
  if (has_children) out_.varint_field(field::kTrackChildOrdering, kOrderedExplicitly);
  out_.int_field(field::kTrackOrderRank, order);
  out_.close(descriptor);
  close(packet);
}

}  // namespace herdsim

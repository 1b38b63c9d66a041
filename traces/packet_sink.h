// Where the packets of a trace go: a stream, plain or deflated in batches.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "traces/proto_encoder.h"

namespace herdsim {

// Packets are encoded into `packets()` and handed on by `packet_done()`. Compressed batches become
// TracePackets whose field 50 holds a deflated Trace; Perfetto wants each of them below 512 KiB.
// Throws: SpecError from any function, naming `name`, as soon as the stream refuses bytes: a short
// trace looks like an empty one to every reader, so it must not pass.
class PacketSink {
 public:
  // Both must outlive this object. `name` is of the file, for messages.
  PacketSink(std::ostream& out, const std::string& name, bool compress);

  ProtoEncoder& packets() { return packets_; }
  void packet_done() {
    ++packet_count_;
    if (packets_.size() >= kBatchBytes) write_batch();
  }
  // Writes what is pending and flushes the stream.
  void finish();

  int64_t packet_count() const { return packet_count_; }
  int64_t raw_bytes() const { return raw_bytes_; }
  int64_t written_bytes() const { return written_bytes_; }

 private:
  // Leaves room below 512 KiB for the last packet and for deflate's own headers.
  static constexpr size_t kBatchBytes = 448 << 10;

  void write_batch();
  void write(std::string_view bytes);
  void check_stream() const;

  std::ostream& out_;
  const std::string& name_;
  bool compress_;
  ProtoEncoder packets_;
  std::string deflated_;
  int64_t packet_count_ = 0;
  int64_t raw_bytes_ = 0;
  int64_t written_bytes_ = 0;
};

}  // namespace herdsim

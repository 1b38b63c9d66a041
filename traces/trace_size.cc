#include <algorithm>
#include <bit>

#include "traces/perfetto_writer.h"

namespace herdsim {
namespace {

int64_t varint_bytes(uint64_t value) {
  return value == 0 ? 1 : static_cast<int64_t>((std::bit_width(value) + 6) / 7);
}

// Of a packet around an event: tag and length, sequence, flags, timestamp; tag and length, type,
// track.
int64_t event_bytes(int64_t at_ns, uint64_t typical_track) {
  return 2 + 2 + 2 + 1 + varint_bytes(static_cast<uint64_t>(at_ns)) + 2 + 2 + 1 +
         varint_bytes(typical_track);
}

// Tag and length, name, tag and value.
int64_t annotation_bytes(int64_t value_bytes) { return 2 + 2 + 1 + value_bytes; }

int64_t annotations_bytes(const Span& span) {
  int64_t size = 0;
  if (span.bytes.count() > 0)
    size += annotation_bytes(varint_bytes(static_cast<uint64_t>(span.bytes.count())));
  if (span.flops.count() > 0) size += annotation_bytes(8);
  if (span.micro_batch >= 0)
    size += annotation_bytes(varint_bytes(static_cast<uint64_t>(span.micro_batch)));
  if (span.chunk >= 0) size += annotation_bytes(1);
  return size;
}

// Of a pipeline of 256 stages and 64 micro-batches.
constexpr double kDeflateRatio = 0.19;
constexpr int64_t kTrackBytes = 52;
constexpr int64_t kCategoryAndNameBytes = 5;
constexpr int64_t kDoubleBytes = 10;
constexpr int64_t kNameBytes = 6;

// Consecutive compute spans of one phase, micro-batch and chunk are one slice.
int64_t phases_bytes(const StepTrace& trace, uint64_t typical_track) {
  int64_t size = 0;
  const Span* before = nullptr;
  for (const Span& span : trace.spans) {
    if (span.stream != Stream::kCompute) continue;
    const bool is_same = before != nullptr && before->rank == span.rank &&
                         before->micro_batch == span.micro_batch && before->chunk == span.chunk &&
                         before->phase == span.phase;
    before = &span;
    if (!is_same)
      size += 2 * event_bytes(span.end.nanoseconds(), typical_track) + kCategoryAndNameBytes;
  }
  return size;
}

int64_t last_instant(const StepTrace& trace) {
  Instant last;
  for (const Span& span : trace.spans) last = std::max(last, span.end);
  return last.nanoseconds();
}

}  // namespace

int64_t estimated_trace_bytes(const StepTrace& trace, const PerfettoOptions& options) {
  const auto typical_track = static_cast<uint64_t>(4 * trace.ranks.size());
  int64_t lanes = 0, flow_ends = 0, body = 0;
  const Span* before = nullptr;
  for (const Span& span : trace.spans) {
    if (before == nullptr || before->rank != span.rank || before->stream != span.stream) ++lanes;
    before = &span;
    body += event_bytes(span.begin.nanoseconds(), typical_track) + kCategoryAndNameBytes;
    if (span.begin < span.end) body += event_bytes(span.end.nanoseconds(), typical_track);
    if (options.annotations) body += annotations_bytes(span);
    if (span.flow != 0) ++flow_ends;
  }
  if (options.phases) body += phases_bytes(trace, typical_track);
  for (const Counter& counter : trace.counters) {
    for (const CounterSample& sample : counter.samples) {
      body += event_bytes(sample.at.nanoseconds(), typical_track) + kDoubleBytes;
    }
  }
  for (const ClusterSpan& span : trace.of_cluster) {
    body += 2 * event_bytes(span.end.nanoseconds(), typical_track) + kCategoryAndNameBytes +
            annotation_bytes(8) + static_cast<int64_t>(span.name.size()) + kNameBytes + kTrackBytes;
  }
  int64_t waits = 0;
  if (options.overlay != nullptr) {
    for (const PathSpan& span : options.overlay->critical_path) {
      body += 2 * event_bytes(span.end.nanoseconds(), typical_track) + kCategoryAndNameBytes +
              (options.annotations ? 3 * annotation_bytes(2) : 0);
    }
    waits = std::min(static_cast<int64_t>(options.overlay->waits.size()), options.max_flows / 2);
    body += waits * 2 * kDoubleBytes;
  }
  const int64_t arrows = std::min(flow_ends / 2, options.max_flows - waits);
  body += arrows * (2 * kDoubleBytes + event_bytes(last_instant(trace), typical_track));
  for (const std::string& name : trace.names)
    body += static_cast<int64_t>(name.size()) + kNameBytes;
  const auto tracks = static_cast<int64_t>(trace.ranks.size() + trace.counters.size()) + lanes;
  body += tracks * kTrackBytes;
  return options.compress ? static_cast<int64_t>(static_cast<double>(body) * kDeflateRatio) : body;
}

}  // namespace herdsim

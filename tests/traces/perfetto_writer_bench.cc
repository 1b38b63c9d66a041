#include <benchmark/benchmark.h>

#include <ostream>
#include <streambuf>

#include "tests/traces/synthetic_trace.h"
#include "traces/perfetto_writer.h"
#include "traces/proto_encoder.h"

namespace herdsim {
namespace {

class NullBuffer : public std::streambuf {
 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

// Goal: 12 ns for an event packet of about 30 bytes; protobuf's own classes take 31.
void encode_event_packet(benchmark::State& state) {
  ProtoEncoder out;
  uint64_t at = 1'000'000'000;
  for (auto _ : state) {
    if (out.size() > (256u << 10)) out.clear();
    const size_t packet = out.open(1);
    out.varint_field(10, 1);
    out.varint_field(13, 2);
    out.varint_field(8, at += 977);
    const size_t event = out.open(11);
    out.varint_field(3, 1);
    out.varint_field(9, 1);
    out.varint_field(10, 17);
    out.varint_field(11, 40'000);
    out.close(event);
    out.close(packet);
    benchmark::ClobberMemory();
  }
  state.counters["goal_ns"] = 12;
}
BENCHMARK(encode_event_packet);

// Goal: 5 million spans a second (two packets each, sorted, with arguments) uncompressed and 1.6
// million deflated.
void write_step(benchmark::State& state) {
  const bool compress = state.range(0) != 0;
  const StepTrace trace = pipeline_trace(256, 64);
  NullBuffer buffer;
  std::ostream out(&buffer);
  PerfettoCounts counts;
  for (auto _ : state) counts = write_perfetto(trace, out, {.compress = compress});
  const auto spans = static_cast<double>(trace.spans.size());
  // Read beside the time: spans a second of processor time.
  state.counters["spans"] =
      benchmark::Counter(spans, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["goal_spans"] = benchmark::Counter(compress ? 1.6e6 : 5e6);
  state.counters["bytes_per_span"] = static_cast<double>(counts.file_bytes) / spans;
}
BENCHMARK(write_step)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace herdsim

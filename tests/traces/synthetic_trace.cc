#include "tests/traces/synthetic_trace.h"

#include <algorithm>
#include <random>
#include <tuple>

namespace herdsim {
namespace {

Instant at(int64_t ns) { return Instant::from_nanoseconds(ns); }

void sort_spans(StepTrace& trace) {
  std::stable_sort(trace.spans.begin(), trace.spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.rank, a.stream, a.begin, a.end) < std::tie(b.rank, b.stream, b.begin, b.end);
  });
}

}  // namespace

StepTrace pipeline_trace(int stages, int micro_batches) {
  StepTrace trace;
  trace.title = "pipeline";
  trace.names = {"forward attention", "forward mlp",   "backward attention", "backward mlp", "send",
                 "receive",           "optimizer adam"};
  constexpr int64_t kHalf = 500, kWire = 200, kOverlap = 50;
  uint64_t flow = 0;
  for (int s = 0; s < stages; ++s) {
    const RankId rank(static_cast<size_t>(s));
    trace.ranks.push_back(
        {.rank = rank, .pod = s / 16, .host = s / 8, .gpu_in_host = s % 8, .pp = s});
    int64_t now = 2 * s * kHalf + s * kWire;
    Counter memory{.rank = rank, .name = "memory", .unit = "GB", .samples = {{at(0), 10.0}}};
    for (int m = 0; m < micro_batches; ++m) {
      for (const uint32_t name : {0u, 1u, 2u, 3u}) {
        trace.spans.push_back({.rank = rank,
                               .begin = at(now),
                               .end = at(now + kHalf),
                               .name = name,
                               .micro_batch = m,
                               .chunk = 0,
                               .flops = Flops(1e9),
                               .phase = name < 2 ? StepPhase::kForward : StepPhase::kBackward});
        now += kHalf;
        if (name != 1 || s + 1 == stages) continue;
        trace.spans.push_back({.rank = rank,
                               .stream = Stream::kSendForward,
                               .begin = at(now),
                               .end = at(now + kWire),
                               .name = 4,
                               .micro_batch = m,
                               .chunk = 0,
                               .bytes = megabytes(16),
                               .flow = ++flow});
        trace.spans.push_back({.rank = RankId(rank.index() + 1),
                               .stream = Stream::kReceive,
                               .begin = at(now + kWire - kOverlap),
                               .end = at(now + kWire + 10),
                               .name = 5,
                               .micro_batch = m,
                               .chunk = 0,
                               .bytes = megabytes(16),
                               .flow = flow});
      }
      memory.samples.push_back({at(now), 10.0 + m});
    }
    trace.spans.push_back({.rank = rank,
                           .begin = at(now),
                           .end = at(now + kHalf),
                           .name = 6,
                           .phase = StepPhase::kOptimizer});
    trace.counters.push_back(std::move(memory));
  }
  trace.counters.push_back({.of_cluster = true,
                            .name = "NIC out",
                            .unit = "GB/s",
                            .samples = {{at(0), 0.0}, {at(700), 50.0}}});
  sort_spans(trace);
  return trace;
}

StepTrace random_trace(uint64_t seed, int ranks, int spans_per_lane) {
  std::mt19937_64 engine(seed);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(engine() % n); };
  StepTrace trace;
  trace.title = "random";
  for (int i = 0; i < 40; ++i)
    trace.names.push_back("kernel " + std::string(static_cast<size_t>(i * 5), 'x'));
  for (int r = 0; r < ranks; ++r) {
    const RankId rank(static_cast<size_t>(3 * r));
    trace.ranks.push_back(
        {.rank = rank, .pod = below(3), .host = below(20), .gpu_in_host = below(8)});
    for (size_t lane = 0; lane < kStreams; ++lane) {
      const auto stream = static_cast<Stream>(lane);
      int64_t now = below(1'000);
      for (int i = 0; i < spans_per_lane && stream != Stream::kReceive; ++i) {
        now += below(3) == 0 ? below(1'000'000) : 0;
        const int64_t length = below(5) == 0 ? 0 : below(50'000);
        trace.spans.push_back({.rank = rank,
                               .stream = stream,
                               .begin = at(now),
                               .end = at(now + length),
                               .name = static_cast<uint32_t>(below(40)),
                               .micro_batch = static_cast<int32_t>(below(300) - 1),
                               .chunk = static_cast<int32_t>(below(9) - 1),
                               .bytes = Bytes(below(1ull << 40)),
                               .flops = Flops(static_cast<double>(below(1ull << 50)))});
        now += length;
      }
    }
  }
  // Receives one after the other on the last rank; each ends no earlier than its send begins.
  int64_t busy_until = 0;
  uint64_t flow = 0;
  const size_t count = trace.spans.size();
  std::vector<size_t> sends;
  for (size_t i = 0; i < count; ++i) {
    const Stream s = trace.spans[i].stream;
    if ((s == Stream::kSendForward || s == Stream::kSendBackward) && below(2) == 0)
      sends.push_back(i);
  }
  std::sort(sends.begin(), sends.end(),
            [&](size_t a, size_t b) { return trace.spans[a].begin < trace.spans[b].begin; });
  for (const size_t i : sends) {
    const int64_t sent = trace.spans[i].begin.nanoseconds();
    const int64_t begin = std::max<int64_t>(busy_until, sent - below(300));
    const int64_t end = std::max(begin, sent) + (below(4) == 0 ? 0 : below(60'000));
    trace.spans[i].flow = ++flow;
    trace.spans.push_back({.rank = trace.ranks.back().rank,
                           .stream = Stream::kReceive,
                           .begin = at(begin),
                           .end = at(end),
                           .name = 1,
                           .flow = flow});
    busy_until = end;
  }
  sort_spans(trace);
  return trace;
}

}  // namespace herdsim

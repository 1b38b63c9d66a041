#include "tools/simulation/trace_layers.h"

#include <algorithm>
#include <map>
#include <optional>

namespace herdsim {
namespace {

constexpr double kBytesInGigabyte = 1e9;

// Transfers that leave the host; those of tensor parallelism stay on NVLink and are as many as the
// kernels.
bool is_on_network(const Span& span) {
  switch (span.stream) {
    case Stream::kSendForward:
    case Stream::kSendBackward:
    case Stream::kDp:
    case Stream::kEp:
      return span.begin < span.end;
    case Stream::kCompute:
    case Stream::kTp:
    case Stream::kCp:
    case Stream::kReceive:
    case Stream::kHost:
      return false;
  }
  return false;
}

// Rates that add up where transfers overlap.
void add_network(RankId rank, const std::vector<const Span*>& transfers, StepTrace& trace) {
  std::map<Instant, double> changes;
  for (const Span* span : transfers) {
    const double rate = static_cast<double>(span->bytes.count()) / kBytesInGigabyte /
                        (span->end - span->begin).seconds();
    changes[span->begin] += rate;
    changes[span->end] -= rate;
  }
  if (changes.empty()) return;
  Counter counter{.rank = rank, .name = "PP, DP and EP bytes", .unit = "GB/s", .samples = {}};
  double rate = 0;
  for (const auto& [at, change] : changes) {
    rate += change;
    // Sums of differences leave a rest of the last digits.
    counter.samples.push_back({at, rate < 1e-9 ? 0 : rate});
  }
  trace.counters.push_back(std::move(counter));
}

void add_memory(const std::vector<SchedulePass>& passes, StepTrace& trace) {
  for (size_t i = 0; i < passes.size();) {
    Counter counter{.rank = passes[i].rank, .name = "memory", .unit = "GB", .samples = {}};
    for (; i < passes.size() && passes[i].rank == counter.rank; ++i) {
      if (!passes[i].memory) continue;
      counter.samples.push_back(
          {passes[i].begin, static_cast<double>(passes[i].memory->count()) / kBytesInGigabyte});
    }
    if (!counter.samples.empty()) trace.counters.push_back(std::move(counter));
  }
}

// Kernels of one rank that began after their stream was idle, each with what ended then.
void add_waits(const StepTrace& trace, size_t first, size_t last, std::vector<WaitArrow>& waits) {
  std::map<Instant, uint32_t> ended;  // on another stream; the last in the trace's order
  for (size_t i = first; i < last; ++i) {
    const Span& span = trace.spans[i];
    const bool can_block = span.stream != Stream::kCompute && span.stream != Stream::kHost;
    if (can_block && span.begin < span.end) ended[span.end] = static_cast<uint32_t>(i);
  }
  std::optional<Instant> free;
  for (size_t i = first; i < last; ++i) {
    const Span& span = trace.spans[i];
    if (span.stream != Stream::kCompute) continue;
    const Instant idle_since = free.value_or(Instant::start());
    free = span.end;
    const auto cause = ended.find(span.begin);
    if (idle_since >= span.begin || span.begin == span.end || cause == ended.end()) continue;
    waits.push_back({cause->second, static_cast<uint32_t>(i), span.begin - idle_since});
  }
}

std::vector<WaitArrow> longest_waits(const StepTrace& trace) {
  std::vector<WaitArrow> waits;
  for (size_t first = 0, last = 0; first < trace.spans.size(); first = last) {
    while (last < trace.spans.size() && trace.spans[last].rank == trace.spans[first].rank) ++last;
    add_waits(trace, first, last, waits);
  }
  std::stable_sort(waits.begin(), waits.end(),
                   [](const WaitArrow& a, const WaitArrow& b) { return a.waited > b.waited; });
  if (waits.size() > kMostWaits) waits.resize(kMostWaits);
  return waits;
}

}  // namespace

void add_counters(const std::vector<SchedulePass>& passes, StepTrace& trace) {
  add_memory(passes, trace);
  for (size_t first = 0, last = 0; first < trace.spans.size(); first = last) {
    std::vector<const Span*> transfers;
    for (; last < trace.spans.size() && trace.spans[last].rank == trace.spans[first].rank; ++last) {
      if (is_on_network(trace.spans[last])) transfers.push_back(&trace.spans[last]);
    }
    add_network(trace.spans[first].rank, transfers, trace);
  }
}

TraceOverlay trace_overlay(const StepSimulation& step) {
  TraceOverlay overlay;
  std::map<std::string, uint32_t> names;
  for (const CriticalOp& op : step.critical_path) {
    if (op.begin == op.end) continue;
    const Work& work = step.graph.works[op.work];
    const std::string name =
        work.kind == WorkKind::kCompute
            ? work.name
            : std::string(kStreamNames[static_cast<size_t>(work.stream)]) + ": " + work.name;
    const auto [at, is_new] = names.try_emplace(name, static_cast<uint32_t>(overlay.names.size()));
    if (is_new) overlay.names.push_back(name);
    overlay.critical_path.push_back(
        {op.rank, op.begin, op.end, at->second, op.micro_batch, op.chunk});
  }
  overlay.waits = longest_waits(step.trace);
  return overlay;
}

}  // namespace herdsim

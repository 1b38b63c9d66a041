#include "sim/observe/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace herdsim {
namespace {

bool is_send(Stream s) { return s == Stream::kSendForward || s == Stream::kSendBackward; }

std::string fault_of_ranks(const StepTrace& trace) {
  for (size_t i = 1; i < trace.ranks.size(); ++i) {
    if (trace.ranks[i - 1].rank >= trace.ranks[i].rank) {
      return fmt::format("rank {} follows rank {}", trace.ranks[i].rank.index(),
                         trace.ranks[i - 1].rank.index());
    }
  }
  return "";
}

bool has_rank(const StepTrace& trace, RankId rank) {
  const auto at =
      std::lower_bound(trace.ranks.begin(), trace.ranks.end(), rank,
                       [](const RankPlace& place, RankId id) { return place.rank < id; });
  return at != trace.ranks.end() && at->rank == rank;
}

std::string fault_of_spans(const StepTrace& trace) {
  const Span* previous = nullptr;
  std::optional<RankId> known;
  for (const Span& span : trace.spans) {
    const auto where = [&] {
      return fmt::format("rank {}, {} at {} ns", span.rank.index(),
                         kStreamNames[static_cast<size_t>(span.stream)], span.begin.nanoseconds());
    };
    if (static_cast<size_t>(span.stream) >= kStreams) return "a span on no stream";
    if (known != span.rank && !has_rank(trace, span.rank))
      return where() + ": the rank has no place";
    known = span.rank;
    if (span.name >= trace.names.size()) return where() + ": its name is not in the table";
    if (span.begin < Instant::start()) return where() + ": begins before the step";
    if (span.end < span.begin) return where() + ": ends before it begins";
    if (span.end == Instant::never()) return where() + ": never ends";
    if (previous != nullptr) {
      const auto lane = std::pair(previous->rank, previous->stream);
      const auto here = std::pair(span.rank, span.stream);
      if (here < lane) return where() + ": out of order";
      if (here == lane && span.begin < previous->end)
        return where() + ": overlaps the span before it";
    }
    previous = &span;
  }
  return "";
}

std::string fault_of_counters(const StepTrace& trace) {
  for (const Counter& counter : trace.counters) {
    if (!counter.of_cluster && !has_rank(trace, counter.rank)) {
      return fmt::format("counter {}: rank {} has no place", counter.name, counter.rank.index());
    }
    for (size_t i = 0; i < counter.samples.size(); ++i) {
      const CounterSample& sample = counter.samples[i];
      const bool in_order =
          i == 0 ? sample.at >= Instant::start() : counter.samples[i - 1].at <= sample.at;
      if (!in_order || !std::isfinite(sample.value)) {
        return fmt::format("counter {}: sample {} is out of order or not finite", counter.name, i);
      }
    }
  }
  return "";
}

std::string fault_of_flows(const StepTrace& trace) {
  std::vector<const Span*> ends;
  for (const Span& span : trace.spans) {
    if (span.flow != 0) ends.push_back(&span);
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const Span* a, const Span* b) { return a->flow < b->flow; });
  for (size_t first = 0, last = 0; first < ends.size(); first = last) {
    const Span* receive = nullptr;
    for (last = first; last < ends.size() && ends[last]->flow == ends[first]->flow; ++last) {
      if (is_send(ends[last]->stream)) continue;
      if (ends[last]->stream != Stream::kReceive) {
        return fmt::format("flow {} is on a stream that neither sends nor receives",
                           ends[first]->flow);
      }
      if (receive != nullptr) return fmt::format("flow {} ends in two receives", ends[first]->flow);
      receive = ends[last];
    }
    for (size_t i = first; i < last && receive != nullptr; ++i) {
      if (is_send(ends[i]->stream) && receive->end < ends[i]->begin) {
        return fmt::format("flow {} arrives at {} ns, before it is sent at {} ns", receive->flow,
                           receive->end.nanoseconds(), ends[i]->begin.nanoseconds());
      }
    }
  }
  return "";
}

std::string fault_of_cluster_spans(const StepTrace& trace) {
  std::map<std::string, Instant> free;
  Instant begin;
  for (const ClusterSpan& span : trace.of_cluster) {
    if (span.begin < begin) return "\"" + span.name + "\" is out of order";
    begin = span.begin;
    if (span.end <= span.begin) return "\"" + span.name + "\" has no length";
    Instant& row = free[span.name];
    if (span.begin < row) return "\"" + span.name + "\" overlaps the one before it";
    row = span.end;
  }
  return "";
}

}  // namespace

std::string first_fault(const StepTrace& trace) {
  for (const auto& check : {fault_of_ranks, fault_of_spans, fault_of_counters,
                            fault_of_cluster_spans, fault_of_flows}) {
    std::string fault = check(trace);
    if (!fault.empty()) return fault;
  }
  return "";
}

}  // namespace herdsim

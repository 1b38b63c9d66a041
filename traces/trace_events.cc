#include "traces/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/check.h"
#include "traces/printable_text.h"

namespace herdsim {
namespace {

EventKind begin_kind(const Span& span) {
  if (span.begin < span.end) return EventKind::kSpanBegin;
  return span.stream == Stream::kReceive ? EventKind::kReceiveInstant : EventKind::kSpanInstant;
}

// One stable pass of a radix sort: by the digit that `digit_of` gives, below kDigits.
constexpr size_t kDigitBits = 11;
constexpr size_t kDigits = 1 << kDigitBits;

template <class DigitOf>
void sort_by_digit(std::vector<TraceEvent>& events, std::vector<TraceEvent>& scratch,
                   DigitOf digit_of) {
  std::array<size_t, kDigits + 1> first{};
  for (const TraceEvent& event : events) ++first[digit_of(event) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (const TraceEvent& event : events) scratch[first[digit_of(event)]++] = event;
  events.swap(scratch);
}

// By time, kind, item. Requires: items of a kind ascend, as they are added. Four or five linear
// passes for a step of seconds; comparing costs six times as much for a million events.
void sort_events(std::vector<TraceEvent>& events) {
  std::vector<TraceEvent> scratch(events.size());
  int64_t last = 0;
  for (const TraceEvent& event : events) last = std::max(last, event.at_ns);
  sort_by_digit(events, scratch, [](const TraceEvent& e) { return static_cast<size_t>(e.kind); });
  for (size_t shift = 0; shift < 64 && last >> shift > 0; shift += kDigitBits) {
    sort_by_digit(events, scratch, [shift](const TraceEvent& e) {
      return static_cast<size_t>(e.at_ns >> shift) & (kDigits - 1);
    });
  }
}

class EventBuilder {
 public:
  EventBuilder(const StepTrace& trace, const TrackTree& tree) : trace_(trace), tree_(tree) {
    HERDSIM_CHECK(trace.spans.size() < UINT32_MAX) << trace.spans.size() << " spans";
  }

  TraceEvents build(const EventChoice& choice) {
    add_spans();
    if (choice.phases) add_phases();
    add_cluster_spans();
    add_samples();
    if (choice.overlay != nullptr) {
      add_path(choice.overlay->critical_path);
      add_waits(choice.overlay->waits, choice.max_flows / 2);
    }
    add_flows(choice.max_flows);
    sort_events(out_.events);
    return std::move(out_);
  }

 private:
  void add(Instant at, EventKind kind, size_t item) {
    out_.events.push_back({at.nanoseconds(), static_cast<uint32_t>(item), kind});
  }

  void add_spans() {
    out_.events.reserve(2 * trace_.spans.size());
    out_.track_of_span.reserve(trace_.spans.size());
    out_.has_arrow.assign(trace_.spans.size(), false);
    for (size_t i = 0, place = 0; i < trace_.spans.size(); ++i) {
      const Span& span = trace_.spans[i];
      while (trace_.ranks[place].rank != span.rank) ++place;
      out_.track_of_span.push_back(tree_.of_stream[place][static_cast<size_t>(span.stream)]);
      add(span.begin, begin_kind(span), i);
      if (span.begin < span.end) add(span.end, EventKind::kSpanEnd, i);
    }
  }

  // What the spans of one phase share; its name is made once.
  struct PhaseKey {
    StepPhase phase = StepPhase::kUnknown;
    int32_t micro_batch = -1, chunk = -1;
    uint32_t name = 0;  // of the span, where nothing else tells what it is part of
    auto operator<=>(const PhaseKey&) const = default;
  };

  static PhaseKey key_of(const Span& span) {
    const bool is_alone = span.phase == StepPhase::kUnknown && span.micro_batch < 0;
    return {span.phase, span.micro_batch, span.chunk, is_alone ? span.name : 0};
  }

  std::string phase_name(const PhaseKey& key) const {
    std::string name(kStepPhaseNames[static_cast<size_t>(key.phase)]);
    if (name.empty()) name = key.micro_batch >= 0 ? "micro-batch" : trace_.names[key.name];
    if (key.micro_batch >= 0) name += fmt::format(" {}", key.micro_batch);
    if (key.chunk > 0) name += fmt::format(" chunk {}", key.chunk);
    return printable(name);
  }

  void add_phases() {
    std::map<PhaseKey, uint32_t> known;
    PhaseKey current;
    size_t place = 0;
    for (const Span& span : trace_.spans) {
      if (span.stream != Stream::kCompute || span.begin == span.end) continue;
      const PhaseKey key = key_of(span);
      const bool is_same_rank = trace_.ranks[place].rank == span.rank;
      if (is_same_rank && !out_.phases.empty() && key == current) {
        out_.phases.back().end = span.end;
        continue;
      }
      current = key;
      while (trace_.ranks[place].rank != span.rank) ++place;
      const auto [name, is_new] = known.emplace(key, static_cast<uint32_t>(known.size()));
      if (is_new) out_.phase_names.push_back(phase_name(key));
      out_.phases.push_back(
          {.place = place, .begin = span.begin, .end = span.end, .name = name->second});
    }
    for (size_t i = 0; i < out_.phases.size(); ++i) {
      add(out_.phases[i].begin, EventKind::kPhaseBegin, i);
      add(out_.phases[i].end, EventKind::kPhaseEnd, i);
    }
  }

  void add_cluster_spans() {
    for (size_t i = 0; i < trace_.of_cluster.size(); ++i) {
      add(trace_.of_cluster[i].begin, EventKind::kClusterBegin, i);
      add(trace_.of_cluster[i].end, EventKind::kClusterEnd, i);
    }
  }

  void add_samples() {
    for (size_t c = 0; c < trace_.counters.size(); ++c) {
      for (size_t s = 0; s < trace_.counters[c].samples.size(); ++s) {
        add(trace_.counters[c].samples[s].at, EventKind::kSample, out_.samples.size());
        out_.samples.push_back({static_cast<uint32_t>(c), static_cast<uint32_t>(s)});
      }
    }
  }

  void add_path(const std::vector<PathSpan>& path) {
    for (size_t i = 0; i < path.size(); ++i) {
      add(path[i].begin, EventKind::kPathBegin, i);
      add(path[i].end, EventKind::kPathEnd, i);
    }
  }

  void add_waits(const std::vector<WaitArrow>& waits, int64_t limit) {
    for (const WaitArrow& wait : waits) {
      if (out_.flows == limit) {
        ++out_.flows_left_out;
      } else {
        add_arrow(wait.from, wait.to);
      }
    }
  }

  void add_flows(int64_t limit) {
    struct Arrival {
      uint64_t flow;
      size_t span;
    };
    std::vector<Arrival> arrivals;
    for (size_t i = 0; i < trace_.spans.size(); ++i) {
      const Span& span = trace_.spans[i];
      if (span.flow != 0 && span.stream == Stream::kReceive) arrivals.push_back({span.flow, i});
    }
    std::sort(arrivals.begin(), arrivals.end(),
              [](const Arrival& a, const Arrival& b) { return a.flow < b.flow; });
    for (size_t i = 0; i < trace_.spans.size(); ++i) {
      const Span& span = trace_.spans[i];
      if (span.flow == 0 || span.stream == Stream::kReceive) continue;
      const auto at =
          std::lower_bound(arrivals.begin(), arrivals.end(), span.flow,
                           [](const Arrival& a, uint64_t flow) { return a.flow < flow; });
      if (at == arrivals.end() || at->flow != span.flow) continue;
      if (out_.flows == limit) {
        ++out_.flows_left_out;
        continue;
      }
      add_arrow(i, at->span);
    }
    std::sort(out_.flow_ends.begin(), out_.flow_ends.end(), [](const FlowEnd& a, const FlowEnd& b) {
      return std::tie(a.kind, a.item, a.id) < std::tie(b.kind, b.item, b.id);
    });
    add_anchors();
  }

  void add_arrow(size_t send, size_t receive) {
    const Span& from = trace_.spans[send];
    const Span& to = trace_.spans[receive];
    const bool reaches_start = from.end <= to.begin;
    const bool leaves_end = from.end <= to.end;
    const auto id = static_cast<uint64_t>(++out_.flows);
    out_.has_arrow[send] = out_.has_arrow[receive] = true;
    out_.flow_ends.push_back({.kind = leaves_end ? begin_kind(from) : EventKind::kSent,
                              .item = static_cast<uint32_t>(send),
                              .id = id});
    out_.flow_ends.push_back({.kind = reaches_start ? begin_kind(to) : EventKind::kArrived,
                              .item = static_cast<uint32_t>(receive),
                              .id = id,
                              .arrives = true});
  }

  // One instant an anchored span, however many arrows meet there.
  void add_anchors() {
    const FlowEnd* before = nullptr;
    for (const FlowEnd& end : out_.flow_ends) {
      const bool is_same =
          before != nullptr && before->kind == end.kind && before->item == end.item;
      before = &end;
      if (is_same) continue;
      if (end.kind == EventKind::kSent) add(trace_.spans[end.item].begin, end.kind, end.item);
      if (end.kind == EventKind::kArrived) add(trace_.spans[end.item].end, end.kind, end.item);
    }
  }

  const StepTrace& trace_;
  const TrackTree& tree_;
  TraceEvents out_;
};

}  // namespace

TraceEvents trace_events(const StepTrace& trace, const TrackTree& tree, const EventChoice& choice) {
  return EventBuilder(trace, tree).build(choice);
}

}  // namespace herdsim

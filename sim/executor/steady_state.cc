#include "sim/executor/steady_state.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace herdsim {
namespace {

bool have_equal_parts(const RecordedStep& a, const RecordedStep& b) {
  const auto is_same_transfer = [](const TransferRuns& x, const TransferRuns& y) {
    return x.lane == y.lane && x.transfer == y.transfer && x.work == y.work;
  };
  const auto is_same_rank = [](const FoldedRank& x, const FoldedRank& y) {
    return x.program == y.program && x.compute_factor == y.compute_factor;
  };
  return a.outcome.deadlock.empty() && b.outcome.deadlock.empty() &&
         a.graph.works.size() == b.graph.works.size() &&
         std::equal(a.job.ranks.begin(), a.job.ranks.end(), b.job.ranks.begin(), b.job.ranks.end(),
                    is_same_rank) &&
         std::equal(a.outcome.transfers.begin(), a.outcome.transfers.end(),
                    b.outcome.transfers.begin(), b.outcome.transfers.end(), is_same_transfer) &&
         a.outcome.link_bytes.size() == b.outcome.link_bytes.size();
}

// The ops of one rank class, stream by stream in the order they began.
class RankRun {
 public:
  RankRun(const RecordedStep& step, RankClassId rank)
      : program_(&step.graph.programs[step.job.ranks[rank].program]),
        records_(&step.outcome.records[rank]),
        order_(program_->stream_order),
        place_(program_->ops.size()) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      // Messages arrive as their senders order them.
      std::stable_sort(order_[stream].begin(), order_[stream].end(),
                       [&](OpId a, OpId b) { return record(a).begin < record(b).begin; });
      for (size_t i = 0; i < order_[stream].size(); ++i) {
        place_[order_[stream][i].index()] = {static_cast<uint32_t>(stream),
                                             static_cast<uint32_t>(i)};
      }
    }
  }

  struct Place {
    uint32_t stream = 0, at = 0;
  };

  size_t size(size_t stream) const { return order_[stream].size(); }
  OpId id(size_t stream, size_t i) const { return order_[stream][i]; }
  const Op& op(OpId id) const { return program_->ops[id.index()]; }
  const OpRecord& record(OpId id) const { return (*records_)[id.index()]; }
  const OpRecord& record(size_t stream, size_t i) const { return record(id(stream, i)); }
  WorkId work(size_t stream, size_t i) const { return op(id(stream, i)).work; }
  Place place(OpId id) const { return place_[id.index()]; }
  std::span<const OpId> dependencies(OpId id) const { return program_->dependencies_of(op(id)); }
  // The first of the stream that began at `at` or later.
  size_t first_from(size_t stream, Instant at) const {
    const auto found = std::partition_point(order_[stream].begin(), order_[stream].end(),
                                            [&](OpId id) { return record(id).begin < at; });
    return static_cast<size_t>(found - order_[stream].begin());
  }

 private:
  const Program* program_;
  const std::vector<OpRecord>* records_;
  std::vector<std::vector<OpId>> order_;  // by stream
  std::vector<Place> place_;              // by op
};

// When a stream of the two first does something else.
Instant turn_of(const RankRun& a, const RankRun& b, size_t stream) {
  const size_t both = std::min(a.size(stream), b.size(stream));
  for (size_t i = 0; i < both; ++i) {
    const OpRecord &of_a = a.record(stream, i), &of_b = b.record(stream, i);
    if (a.work(stream, i) != b.work(stream, i) || of_a.begin != of_b.begin) {
      return std::min(of_a.begin, of_b.begin);
    }
    if (of_a.end != of_b.end) return std::min(of_a.end, of_b.end);
  }
  if (a.size(stream) > both) return a.record(stream, both).begin;
  return b.size(stream) > both ? b.record(stream, both).begin : Instant::never();
}

// Hosts that launch ahead of their GPUs have a pace of their own. Where nothing finds its launch
// missing any more, and the hosts are no slower, `HostPace::kOwn` leaves them out.
enum class HostPace : uint8_t { kOfTheGpus, kOwn };

class SteadyCheck {
 public:
  SteadyCheck(const RecordedStep& fewer, const RecordedStep& more)
      : pace_(more.outcome.makespan - fewer.outcome.makespan) {
    for (size_t r = 0; r < fewer.job.ranks.size(); ++r) {
      fewer_.push_back(RankRun(fewer, RankClassId(r)));
      more_.push_back(RankRun(more, RankClassId(r)));
    }
  }

  bool run(HostPace host) {
    host_ = host;
    windows_ = {};
    find_turn();
    if (pace_ <= Duration::zero() || now_ == Instant::never() ||
        now_ < Instant::start() + pace_ * 2) {
      return false;
    }
    then_ = Instant::start() + (now_.since_start() - pace_);
    const Instant before = Instant::start() + (then_.since_start() - pace_);
    for (const RankRun& run : fewer_) {
      std::array<Window, kStreams> windows{};
      for (size_t stream = 0; stream < kStreams; ++stream) {
        windows[stream] = {run.first_from(stream, before), run.first_from(stream, then_),
                           run.first_from(stream, now_)};
      }
      windows_.push_back(windows);
    }
    for (size_t r = 0; r < fewer_.size(); ++r) {
      const RankClassId rank(r);
      if (host_ == HostPace::kOwn && !is_launched_ahead(rank)) return false;
      for (size_t stream = 0; stream < kStreams; ++stream) {
        if (counts(stream) && (!repeats(rank, stream) || !goes_on(rank, stream))) return false;
      }
    }
    return true;
  }

 private:
  // The first ops of a stream that began two periods before the turn, one before it, and at it.
  struct Window {
    size_t before = 0, then = 0, now = 0;
  };

  static constexpr auto kHost = static_cast<size_t>(Stream::kHost);

  bool counts(size_t stream) const { return stream != kHost || host_ == HostPace::kOfTheGpus; }

  // From two periods before the turn on each launch is done before its stream gets to what it
  // launches, and the host, which waits for nothing, gains on the GPU or keeps its distance.
  bool is_launched_ahead(RankClassId rank) const {
    const RankRun &a = fewer_[rank], &b = more_[rank];
    if (a.size(kHost) == 0) return b.size(kHost) == 0;
    const Duration own_pace =
        b.record(kHost, b.size(kHost) - 1).end - a.record(kHost, a.size(kHost) - 1).end;
    if (own_pace > pace_) return false;
    for (size_t stream = 0; stream < kStreams; ++stream) {
      for (size_t i = windows_[rank][stream].before; i < a.size(stream); ++i) {
        const Instant free = i == 0 ? Instant::start() : a.record(stream, i - 1).end;
        for (const OpId needs : a.dependencies(a.id(stream, i))) {
          const bool is_launch = a.place(needs).stream == kHost;
          if (stream == kHost ? !is_launch : is_launch && a.record(needs).end > free) return false;
        }
      }
    }
    return true;
  }

  void find_turn() {
    now_ = Instant::never();
    for (size_t r = 0; r < fewer_.size(); ++r) {
      const RankClassId rank(r);
      for (size_t stream = 0; stream < kStreams; ++stream) {
        if (counts(stream)) now_ = std::min(now_, turn_of(fewer_[rank], more_[rank], stream));
      }
    }
  }

  // What began in the last period is what began in the one before it.
  bool repeats(RankClassId rank, size_t stream) const {
    const RankRun& run = fewer_[rank];
    const Window& w = windows_[rank][stream];
    if (w.now - w.then != w.then - w.before) return false;
    for (size_t i = 0; i < w.then; ++i) {
      if (run.record(stream, i).end > now_) return false;  // older than a period
    }
    for (size_t i = w.before, j = w.then; j < w.now; ++i, ++j) {
      const OpRecord &earlier = run.record(stream, i), &later = run.record(stream, j);
      if (run.work(stream, i) != run.work(stream, j) || later.begin != earlier.begin + pace_) {
        return false;
      }
      const bool ends_before_turn = std::min(earlier.end + pace_, later.end) <= now_;
      if (ends_before_turn && later.end != earlier.end + pace_) return false;
    }
    return true;
  }

  // What the longer run does from the turn on is what the shorter one did from a period before it.
  bool goes_on(RankClassId rank, size_t stream) const {
    const RankRun &a = fewer_[rank], &b = more_[rank];
    const Window& w = windows_[rank][stream];
    if (a.size(stream) - w.then != b.size(stream) - w.now) return false;
    for (size_t i = w.then, j = w.now; i < a.size(stream); ++i, ++j) {
      const OpId of_a = a.id(stream, i), of_b = b.id(stream, j);
      const std::span<const OpId> needs_a = a.dependencies(of_a), needs_b = b.dependencies(of_b);
      if (a.op(of_a).work != b.op(of_b).work || needs_a.size() != needs_b.size()) return false;
      for (size_t d = 0; d < needs_a.size(); ++d) {
        if (!corresponds(rank, needs_a[d], needs_b[d])) return false;
      }
      const OpRecord &record_a = a.record(of_a), &record_b = b.record(of_b);
      if (stream == static_cast<size_t>(Stream::kReceive) &&
          (record_a.by != record_b.by ||
           !corresponds(record_a.by, record_a.cause, record_b.cause))) {
        return false;
      }
    }
    return true;
  }

  // Both have ended by then, or they are a period apart.
  bool corresponds(RankClassId rank, OpId of_a, OpId of_b) const {
    const RankRun &a = fewer_[rank], &b = more_[rank];
    if (a.record(of_a).end <= then_ && b.record(of_b).end <= now_) return true;
    const RankRun::Place in_a = a.place(of_a), in_b = b.place(of_b);
    if (!counts(in_a.stream)) return a.op(of_a).work == b.op(of_b).work;
    const Window& w = windows_[rank][in_a.stream];
    return in_a.stream == in_b.stream && in_a.at + (w.now - w.then) == in_b.at;
  }

  TypedVector<RankClassId, RankRun> fewer_, more_;
  TypedVector<RankClassId, std::array<Window, kStreams>> windows_;
  const Duration pace_;
  HostPace host_ = HostPace::kOfTheGpus;
  Instant then_, now_;  // the turn, and a period before it
};

}  // namespace

bool is_steady(const RecordedStep& fewer, const RecordedStep& more) {
  if (!have_equal_parts(fewer, more)) return false;
  SteadyCheck check(fewer, more);
  return check.run(HostPace::kOfTheGpus) || check.run(HostPace::kOwn);
}

StepOutcome extended(const StepOutcome& fewer, const StepOutcome& more, int64_t periods) {
  const auto grown = [periods](int64_t a, int64_t b) { return a + (b - a) * periods; };
  StepOutcome out;
  out.makespan = nanoseconds(grown(fewer.makespan.nanoseconds(), more.makespan.nanoseconds()));
  out.events = fewer.events + more.events;
  out.account = fewer.account;
  for (size_t r = 0; r < out.account.size(); ++r) {
    for (size_t t = 0; t < kTimeTerms; ++t) {
      out.account[RankClassId(r)][t] =
          grown(fewer.account[RankClassId(r)][t], more.account[RankClassId(r)][t]);
    }
  }
  for (size_t l = 0; l < fewer.link_bytes.size(); ++l) {
    out.link_bytes.push_back(
        Bytes(grown(fewer.link_bytes[LinkId(l)].count(), more.link_bytes[LinkId(l)].count())));
  }
  out.transfers = fewer.transfers;
  for (size_t t = 0; t < out.transfers.size(); ++t) {
    const TransferRuns &a = fewer.transfers[t], &b = more.transfers[t];
    out.transfers[t].runs = grown(a.runs, b.runs);
  }
  return out;
}

}  // namespace herdsim

// A rank's local ops, without events.
//
// A rank has a clock of its own. Between events that concern it from outside, nothing but its local
// ops changes it, and where the next of them ends is known: so it sleeps until the end of one that
// others wait for, and then, or when an event reaches it before, catches up: the same functions run
// as would at each op's end, at the rank's own `now_`.
//
// Segments between meetings (local_order.h) are looked at once: how long one of a shape takes on
// ranks that are alike, while transfers hold so many of their SMs, and what it adds to the account.
// From then on it is passed as a whole, by who plans when to wake and by who catches up.
//
// What has to hold: all that reaches a rank from outside catches it up first; a rank never sleeps
// through the end of an op that somebody outside waits for; after each event, every rank it reached
// plans anew.
//
// A transfer of its own over links that others may use is passed like the others as long as nobody
// uses them (own_transfers.cc); while somebody does, a rank does not sleep through its start.
#include <algorithm>
#include <bit>
#include <tuple>

#include "sim/base/check.h"
#include "sim/executor/step_run.h"

namespace herdsim {

// -- What is local

std::vector<LocalFacts> StepRun::local_works(RankClassId rank) const {
  std::vector<LocalFacts> facts;
  for (size_t w = 0; w < graph_.works.size(); ++w) {
    const Work& work = graph_.works[WorkId(w)];
    const Uneven uneven = costs_.works[WorkId(w)].uneven;
    facts.push_back({.stream = static_cast<uint8_t>(work.stream),
                     .is_local = local_streams_.is_local(rank, static_cast<size_t>(work.stream)),
                     .is_transfer = work.kind == WorkKind::kCollective,
                     .is_uneven = uneven != Uneven::kNot &&
                                  !graph_.uneven[static_cast<size_t>(uneven)].empty()});
  }
  return facts;
}

void StepRun::plan_local_runs() {
  local_.resize(job_.ranks.size());
  own_.resize(job_.ranks.size());
  lone_bytes_.assign(job_.capacity.size(), Bytes());
  std::vector<std::pair<ProgramId, std::vector<LocalFacts>>> ordered;  // as orders_
  using Alike = std::pair<double, std::vector<std::tuple<WorkId, Duration, int64_t>>>;
  std::vector<Alike> alike;
  std::vector<size_t> order_of;
  for (size_t r = 0; r < local_.size(); ++r) {
    const RankClassId rank(r);
    LocalRun& local = local_[rank];
    const ProgramId program = job_.ranks[rank].program;
    std::vector<LocalFacts> works = local_works(rank);
    Alike like{job_.ranks[rank].compute_factor, {}};
    own_[rank].resize(works.size());
    for (size_t w = 0; w < works.size(); ++w) {
      if (!works[w].is_local || !works[w].is_transfer) continue;
      const WorkId work(w);
      const FoldedTransfer& transfer = own_transfer(rank, job_.lane_of_work[work]);
      const CollectivePlan& plan = plans_[w][transfer.shape];
      const Duration alone = alone_time(plan, job_.lanes[job_.lane_of_work[work]], transfer);
      own_[rank][w] = {.alone = alone, .crosses_links = transfer.crossings != 0};
      like.second.emplace_back(work, alone, plan.channels);
    }
    const auto kind = std::find(alike.begin(), alike.end(), like);
    local.alike = static_cast<uint32_t>(kind - alike.begin());
    if (kind == alike.end()) alike.push_back(std::move(like));
    const auto known = std::find(ordered.begin(), ordered.end(), std::pair(program, works));
    order_of.push_back(static_cast<size_t>(known - ordered.begin()));
    if (known != ordered.end()) continue;
    orders_.emplace_back(graph_.programs[program], works, shapes_);
    ordered.emplace_back(program, std::move(works));
  }
  for (size_t r = 0; r < local_.size(); ++r) local_[RankClassId(r)].order = &orders_[order_of[r]];
  known_.resize(alike.size());
  least_.assign(alike.size(), std::vector<Duration>(shapes_.segments(), Duration::infinite()));
}

// -- What segments do

// Whether the segment has transfers over links that others may use.
inline bool StepRun::crosses_links(RankClassId rank, const StretchShape& shape,
                                   const LocalSegment& segment) const {
  const auto first = shape.transfers.begin() + segment.first_transfer;
  return std::any_of(first, first + segment.transfers,
                     [&](WorkId work) { return own_[rank][work.index()].crosses_links; });
}

// The segment that comes next after so many ops of the stretch, if it goes on as if the rank were
// alone.
inline const LocalSegment* StepRun::segment_after(RankClassId rank,
                                                  const LocalOrder::Stretch& stretch,
                                                  uint32_t ops_done) const {
  const StretchShape& shape = shapes_[stretch.shape];
  const LocalSegment* segment = shape.segment_after(ops_done);
  if (segment == nullptr || !segment->is_whole) return nullptr;
  if (local_[rank].others != 0 && crosses_links(rank, shape, *segment)) return nullptr;
  for (uint32_t o = 0; o < segment->outside; ++o) {
    const int32_t place = shape.outside[segment->first_outside + o];
    if (!programs_.is_done(rank, OpId(stretch.first_op + static_cast<uint32_t>(place))))
      return nullptr;
  }
  return segment;
}

// What is known of segments, by shape.
StepRun::SegmentRuns& StepRun::runs_with(uint32_t alike, int64_t sms_lost) {
  for (SegmentRuns& known : known_[alike]) {
    if (known.sms_lost == sms_lost) return known;
  }
  known_[alike].push_back({sms_lost, std::vector<SegmentRun>(shapes_.segments())});
  return known_[alike].back();
}

// What is known of the segment, `runs` being of those like the rank's.
inline const StepRun::SegmentRun& StepRun::run_of(RankClassId rank,
                                                  const LocalOrder::Stretch& stretch,
                                                  const LocalSegment& segment,
                                                  SegmentRuns& runs) const {
  SegmentRun& run = runs.runs[segment.shape];
  if (!run.is_known && segment.ops == 1 && segment.transfers == 0) {
    const WorkCost& cost = costs_.works[work_in(rank, stretch, segment.first)];
    const Duration alone = at_speed_of(rank, cost.total);
    run.is_known = true;
    run.takes = kernel_time(alone.nanoseconds() * sms_, speed_beside(runs.sms_lost));
    for (size_t t = 0; t < kTimeTerms; ++t) run.account[t] = cost.terms[t].nanoseconds();
    run.account[static_cast<size_t>(TimeTerm::kStraggler)] += (alone - cost.total).nanoseconds();
    run.account[static_cast<size_t>(TimeTerm::kOther)] += (run.takes - alone).nanoseconds();
  }
  return run;
}

// A segment is not shorter than what any of its streams has to do, with all SMs.
Duration StepRun::least_time(RankClassId rank, const LocalOrder::Stretch& stretch,
                             const LocalSegment& segment) {
  Duration& least = least_[local_[rank].alike][segment.shape];
  if (least.is_finite()) return least;
  std::array<Duration, kLocalStreams> busy{};
  for (uint32_t n = segment.first; n < segment.first + segment.ops; ++n) {
    const WorkId work = work_in(rank, stretch, n);
    const auto stream = static_cast<size_t>(programs_.facts(work).stream);
    busy[stream] += stream == kCompute ? at_speed_of(rank, costs_.works[work].total)
                                       : own_[rank][work.index()].alone;
  }
  return least = *std::max_element(busy.begin(), busy.end());
}

// So many more local ops are done.
void StepRun::count_done(RankClassId rank, uint32_t ops) {
  LocalRun& local = local_[rank];
  local.done += ops;
  if (local.done < shape_at(rank).ops.size()) return;
  local.done = 0;
  ++local.stretch;
}

// At a meeting: the next segments as a whole, as far as they are known and in time; then `now_` is
// at their end.
void StepRun::pass_segments(RankClassId rank) {
  LocalRun& local = local_[rank];
  if (local.watched != nullptr) keep_watched(rank);
  if (local.stretch == local.order->stretches().size()) return;
  const LocalOrder::Stretch& stretch = local.order->stretches()[local.stretch];
  const LocalSegment* segment = segment_after(rank, stretch, local.done);
  if (segment == nullptr) return;
  RankState& state = ranks_[rank];
  const StretchShape& shape = shapes_[stretch.shape];
  SegmentRuns& runs = runs_with(local.alike, state.sms_lost);
  const Instant latest = Instant::from_nanoseconds(until_.nanoseconds() - (is_inclusive_ ? 0 : 1));
  std::array<int64_t, kTimeTerms>& account = outcome_.account[rank];
  close_interval(rank);
  while (segment != nullptr) {
    const SegmentRun& run = run_of(rank, stretch, *segment, runs);
    if (!run.is_known) {
      local.watched = segment;
      local.watched_since = now_;
      local.watched_stretch = local.stretch;
      local.account_before = account;
      break;
    }
    const Instant end = now_ + run.takes;
    if (end > latest) break;
    now_ = end;
    for (size_t t = 0; t < kTimeTerms; ++t) account[t] += run.account[t];
    for (uint32_t n = segment->first; n < segment->first + segment->ops; ++n) {
      set_done(rank, OpId(stretch.first_op + shape.ops[n]));
    }
    for (uint32_t t = segment->first_transfer; t < segment->first_transfer + segment->transfers;
         ++t) {
      const WorkId work = shape.transfers[t];
      const uint32_t lane = job_.lane_of_work[work];
      count_run(lane, job_.lanes[lane].transfer_of[rank.index()], work, now_);
    }
    programs_.skip(rank, segment->ops_on);
    const uint32_t done = segment->first + segment->ops;
    const bool goes_on = !segment->is_waited_for;
    segment = goes_on ? segment_after(rank, stretch, done) : nullptr;
    local.done = done;
  }
  state.since = now_;
  count_done(rank, 0);
}

// Books what was waited for up to now.
void StepRun::close_interval(RankClassId rank) {
  RankState& state = ranks_[rank];
  add(rank, state.term, now_ - state.since);
  state.since = now_;
}

// What the segment that has just ended did.
void StepRun::keep_watched(RankClassId rank) {
  LocalRun& local = local_[rank];
  const LocalSegment* segment = local.watched;
  const uint32_t end = segment->first + segment->ops;
  if (local.stretch == local.watched_stretch && local.done < end) return;  // nothing runs in it now
  local.watched = nullptr;
  const bool is_last =
      end == shapes_[local.order->stretches()[local.watched_stretch].shape].ops.size();
  const bool has_ended = local.stretch == local.watched_stretch + (is_last ? 1 : 0) &&
                         local.done == (is_last ? 0 : end);
  if (!has_ended) return;
  close_interval(rank);
  SegmentRun& run = runs_with(local.alike, ranks_[rank].sms_lost).runs[segment->shape];
  run.is_known = true;
  run.takes = now_ - local.watched_since;
  for (size_t t = 0; t < kTimeTerms; ++t) {
    run.account[t] = outcome_.account[rank][t] - local.account_before[t];
  }
}

// -- Events

void StepRun::begin_event() { now_ = engine_.now(); }

void StepRun::end_event() {
  for (const RankClassId rank : touched_) plan_wake(rank);
  touched_.clear();
}

void StepRun::touch(RankClassId rank) {
  if (!runs_ahead_ || local_[rank].is_touched) return;
  local_[rank].is_touched = true;
  touched_.push_back(rank);
}

// Before anything from outside reaches the rank. What ends at this very instant is left to its own
// event.
void StepRun::catch_up(RankClassId rank) {
  if (!runs_ahead_) return;
  touch(rank);
  run_local(rank, now_, false);
}

void StepRun::wake(RankClassId rank) {
  local_[rank].wake = EventId();
  begin_event();
  touch(rank);
  run_local(rank, now_, true);
  end_event();
}

// All local ops that end before `until`, or at it, in the order of time.
void StepRun::run_local(RankClassId rank, Instant until, bool inclusive) {
  LocalRun& local = local_[rank];
  if (local.running == 0) return;
  const auto outer = std::pair(until_, is_inclusive_);
  until_ = until;
  is_inclusive_ = inclusive;
  while (local.running != 0) {
    size_t first = kLocalStreams;
    for (uint32_t left = local.running; left != 0; left &= left - 1) {
      const auto stream = static_cast<size_t>(std::countr_zero(left));
      if (first == kLocalStreams || local.ends[stream] < local.ends[first]) first = stream;
    }
    if (local.ends[first] > until || (local.ends[first] == until && !inclusive)) break;
    now_ = local.ends[first];
    end_local(rank, first);
  }
  std::tie(until_, is_inclusive_) = outer;
  now_ = until;
}

void StepRun::plan_wake(RankClassId rank) {
  LocalRun& local = local_[rank];
  local.is_touched = false;
  if (local.running == 0) {
    engine_.cancel(std::exchange(local.wake, EventId()));
    return;
  }
  const Instant when = next_wake(rank);
  if (local.wake && local.wakes == when) return;
  engine_.cancel(local.wake);
  local.wakes = when;
  local.wake = engine_.at(when, [this, rank] { wake(rank); });
}

// Not later than the next local op ends that somebody outside waits for. Where that is not known to
// the nanosecond, the rank wakes early and looks again.
Instant StepRun::next_wake(RankClassId rank) {
  const LocalRun& local = local_[rank];
  const LocalOrder::Stretch& stretch = local.order->stretches()[local.stretch];
  const StretchShape& shape = shapes_[stretch.shape];
  // All that runs belongs to the segment that the next op to be done is in.
  const LocalSegment* segment = &shape.segment_with(local.done);
  const RankState& state = ranks_[rank];
  Instant first = Instant::never(), last = now_;
  int64_t sms_lost = state.sms_lost;
  for (uint32_t left = local.running; left != 0; left &= left - 1) {
    const auto stream = static_cast<size_t>(std::countr_zero(left));
    first = std::min(first, local.ends[stream]);
    if (stream == kCompute) continue;
    last = std::max(last, local.ends[stream]);
    const WorkId work = programs_.work(rank, programs_.next(rank, stream));
    sms_lost -= plans_[work.index()][own_transfer(rank, local.lane[stream]).shape].channels *
                lost_to_a_channel_;
  }
  if (local.in_network != 0 || !segment->is_whole) return first;
  if (local.others != 0 && crosses_links(rank, shape, *segment)) return first;
  if (state.computes) {
    const int64_t left = state.work_left - (now_ - state.updated).nanoseconds() * state.speed;
    last = std::max(last, now_ + kernel_time(left, speed_beside(sms_lost)));
  }
  SegmentRuns& runs = runs_with(local.alike, sms_lost);
  while (!segment->is_waited_for) {
    segment = segment_after(rank, stretch, segment->first + segment->ops);
    if (segment == nullptr) break;
    const SegmentRun& run = run_of(rank, stretch, *segment, runs);
    last = last + (run.is_known ? run.takes : least_time(rank, stretch, *segment));
  }
  return last;
}

}  // namespace herdsim

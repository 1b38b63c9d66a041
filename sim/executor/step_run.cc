#include "sim/executor/step_run.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

constexpr int64_t kWholeSm = Multiprocessors::kParts;

}  // namespace

// Most functions here are short, called for every op, and `inline` although no other file sees
// them: without, many micro-batches run a tenth more instructions.

StepRun::StepRun(Engine& engine, FluidNetwork& network, const OpGraph& graph,
                 const CostedGraph& costs, const FoldedJob& job, const NcclTuning& tuning, const Multiprocessors& sms,
                 const ExecutionChoice& choice, SharedLinks shared)
    : graph_(graph),
      costs_(costs),
      job_(job),
      sms_(sms.count * kWholeSm),
      lost_to_a_channel_(std::llround(sms.lost_per_transfer_sm * static_cast<double>(kWholeSm))),
      engine_(engine),
      network_(network),
      programs_(graph, job),
      ranks_(job.ranks.size()),
      flights_(job.ranks.size()),
      shapes_(graph.works.size()) {
  plan_transfers(tuning, choice.free_transfers);
  runs_ahead_ = !choice.op_by_op && !choice.keep_records && choice.traced.empty();
  if (runs_ahead_) {
    local_streams_ = LocalStreams(graph, job, network, shared);
    plan_local_runs();
  }
  for (const FoldedLane& lane : job.lanes) {
    transfers_.emplace_back(lane.transfers.size());
    runs_.emplace_back(lane.transfers.size());
  }
  trace_of_.assign(job.ranks.size(), kUntraced);
  for (const RankClassId rank : choice.traced) {
    trace_of_[rank] = static_cast<uint32_t>(outcome_.spans.size());
    outcome_.spans.emplace_back();
  }
  outcome_.account.assign(job.ranks.size(), {});
  if (!choice.keep_records) return;
  for (const FoldedRank& rank : job.ranks) {
    outcome_.records.push_back(std::vector<OpRecord>(graph.programs[rank.program].ops.size()));
  }
}

void StepRun::begin() {
  begin_event();
  begin_ = last_end_ = now_;
  for (RankState& state : ranks_) state.since = state.updated = begin_;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    touch(RankClassId(r));
    advance(RankClassId(r));
  }
  end_event();
}

void StepRun::when_done(InlineCallback ended) {
  for (const FoldedRank& rank : job_.ranks) {
    ops_left_ += static_cast<int64_t>(graph_.programs[rank.program].ops.size());
  }
  ended_ = std::move(ended);
}

void StepRun::rewind() {
  programs_.reset();
  ranks_.assign(ranks_.size(), {});
  for (LocalRun& local : local_) local.stretch = local.done = 0;
  std::fill(trace_of_.begin(), trace_of_.end(), kUntraced);
  outcome_ = {};
  outcome_.account.assign(job_.ranks.size(), {});
}

// Whoever hears of it may begin the next step.
void StepRun::tell_end() {
  InlineCallback ended = std::move(ended_);
  ended();
}

// Starts whatever can start on the rank, then books what its compute stream does now.
inline void StepRun::advance(RankClassId rank) {
  for (uint32_t idle = programs_.idle(rank); idle != 0; idle &= idle - 1) {
    const auto stream = static_cast<size_t>(std::countr_zero(idle));
    if (programs_.first_missing(rank, stream) != nullptr) continue;
    programs_.set_running(rank, stream);
    start(rank, programs_.next(rank, stream));
  }
  book(rank);
}

inline void StepRun::start(RankClassId rank, OpId op) {
  switch (programs_.facts(rank, op).kind) {
    case WorkKind::kCompute:
      return start_compute(rank, op);
    case WorkKind::kCollective:
      return arrive(rank, op);
    case WorkKind::kSend:
      return start_send(rank, op);
    case WorkKind::kHost:
      return start_host(rank, op);
    case WorkKind::kReceive:
      break;
  }
  HERDSIM_CHECK(false) << "a receive is never started";
}

inline void StepRun::finish(RankClassId rank, size_t stream, Instant started) {
  const OpId op = programs_.next(rank, stream);
  record(rank, op, started);
  set_done(rank, op);
  programs_.pass(rank, stream);
  if (is_local(rank, stream)) {
    LocalRun& local = local_[rank];
    count_done(rank, 1);
    local.running &= ~(1U << stream);
    if ((local.running | local.in_network) == 0) pass_segments(rank);
  }
  advance(rank);
}

inline void StepRun::record(RankClassId rank, OpId op, Instant started) {
  const uint32_t trace = trace_of_[rank];
  if (trace != kUntraced) outcome_.spans[trace].push_back({op, started, now_});
  if (outcome_.records.empty()) return;
  OpRecord& kept = outcome_.records[rank][op.index()];
  kept.begin = started;
  kept.end = now_;
}

// Who let a collective or a receive start.
inline void StepRun::record_cause(RankClassId rank, OpId op, RankClassId by, OpId cause) {
  if (outcome_.records.empty()) return;
  OpRecord& kept = outcome_.records[rank][op.index()];
  kept.by = by;
  kept.cause = cause;
}

// -- Compute

inline void StepRun::start_compute(RankClassId rank, OpId op) {
  book(rank);
  RankState& state = ranks_[rank];
  const WorkCost& cost = costs_.works[programs_.work(rank, op)];
  state.op = op;
  state.started = now_;
  state.updated = now_;
  state.uneven = beyond_mean(rank, op, cost);
  state.alone = at_speed_of(rank, cost.total + state.uneven);
  state.work_left = state.alone.nanoseconds() * sms_;
  state.computes = true;
  schedule_end(rank);
}

// What the rank's share of uneven work adds to that of the mean rank; negative where it has less.
inline Duration StepRun::beyond_mean(RankClassId rank, OpId op, const WorkCost& cost) const {
  if (cost.uneven == Uneven::kNot) return Duration::zero();
  const double share = graph_.uneven[static_cast<size_t>(cost.uneven)].at(
      job_.ranks[rank].representative, programs_.op(rank, op).micro_batch);
  return nanoseconds(static_cast<int64_t>(
      std::floor(static_cast<double>(cost.uneven_time.nanoseconds()) * (share - 1))));
}

inline void StepRun::schedule_end(RankClassId rank) {
  RankState& state = ranks_[rank];
  state.speed = speed_beside(state.sms_lost);
  const Duration left = kernel_time(state.work_left, state.speed);
  if (runs_ahead_) {
    LocalRun& local = local_[rank];
    local.ends[kCompute] = now_ + left;
    local.running |= 1U << kCompute;
    return;
  }
  state.end = engine_.after(left, [this, rank] {
    begin_event();
    end_compute(rank);
  });
}

inline void StepRun::end_compute(RankClassId rank) {
  RankState& state = ranks_[rank];
  state.computes = false;
  state.end = EventId();
  book_kernel(rank);
  finish(rank, kCompute, state.started);
}

void StepRun::end_local(RankClassId rank, size_t stream) {
  if (stream == kCompute) return end_compute(rank);
  const uint32_t lane = local_[rank].lane[stream];
  end_collective(lane, job_.lanes[lane].transfer_of[rank.index()]);
}

// The host works beside everything its GPU does.
inline void StepRun::start_host(RankClassId rank, OpId op) {
  constexpr auto kHost = static_cast<size_t>(Stream::kHost);
  HERDSIM_CHECK(now_ == engine_.now()) << "a host begins in the past";
  engine_.after(costs_.works[programs_.work(rank, op)].total,
                [this, rank, started = now_] {
                  begin_event();
                  catch_up(rank);
                  finish(rank, kHost, started);
                  end_event();
                });
}

// Transfers take and give back SMs; a kernel that runs goes on with what is left.
inline void StepRun::lose_sms(RankClassId rank, int64_t channels) {
  RankState& state = ranks_[rank];
  state.sms_lost += channels * lost_to_a_channel_;
  if (!state.computes || channels == 0) return;
  const int64_t elapsed = (now_ - state.updated).nanoseconds();
  state.work_left -= elapsed * state.speed;
  state.updated = now_;
  engine_.cancel(state.end);
  schedule_end(rank);
}

// To transfers that are not the rank's own business.
inline void StepRun::hold_sms(RankClassId rank, int64_t channels) {
  catch_up(rank);
  if (runs_ahead_ && channels != 0) local_[rank].watched = nullptr;
  lose_sms(rank, channels);
}

// -- Collectives

inline void StepRun::count_run(uint32_t lane, uint32_t transfer, WorkId work, Instant started) {
  RunCounts& counts = runs_[lane][transfer];
  auto at = std::find_if(counts.rbegin(), counts.rend(),
                         [work](const auto& entry) { return entry.first == work; });
  if (at == counts.rend()) {
    counts.emplace_back(work, 1);
  } else {
    ++at->second;
  }
  if (!outcome_.spans.empty()) {
    outcome_.moves.push_back({lane, transfer, work, started, now_});
  }
}

void StepRun::plan_transfers(const NcclTuning& tuning, std::optional<TimeTerm> free) {
  const auto is_free = [&](const Work& work) { return work.exposed_as == free; };
  plans_.resize(graph_.works.size());
  for (size_t w = 0; w < graph_.works.size(); ++w) {
    const Work& work = graph_.works[WorkId(w)];
    if (work.kind == WorkKind::kCollective) {
      for (const GroupShape& shape : job_.lanes[job_.lane_of_work[WorkId(w)]].shapes) {
        plans_[w].push_back(is_free(work) ? CollectivePlan{} : plan_of(work, shape, tuning));
      }
    } else if (work.kind == WorkKind::kSend) {
      // By slot, then shape.
      for (const uint32_t lane : job_.message_lane) {
        for (const GroupShape& shape : job_.lanes[lane].shapes) {
          plans_[w].push_back(is_free(work) ? CollectivePlan{}
                                            : plan_collective(CollectiveKind::kSendRecv, work.bytes,
                                                              shape, tuning));
        }
      }
    }
  }
}

void StepRun::arrive(RankClassId rank, OpId op) {
  const WorkId work = programs_.work(rank, op);
  const uint32_t lane_index = job_.lane_of_work[work];
  const FoldedLane& lane = job_.lanes[lane_index];
  const uint32_t index = lane.transfer_of[rank.index()];
  TransferState& state = transfers_[lane_index][index];
  HERDSIM_CHECK(state.arrived == 0 || state.work == work)
      << "members of a group disagree on its next collective";
  state.work = work;
  state.last = rank;
  state.last_op = op;
  if (++state.arrived < lane.transfers[index].members) return;
  if (lane.transfers[index].members > 1) catch_up_members(lane, lane.transfers[index]);
  state.running = true;
  state.started = now_;
  start_collective(lane_index, index);
}

// Up to now a member's waiting is booked by what the transfer was.
inline void StepRun::catch_up_members(const FoldedLane& lane, const FoldedTransfer& transfer) {
  for (const RankClassId member : lane.members_of(transfer)) catch_up(member);
}

void StepRun::start_collective(uint32_t lane_index, uint32_t index) {
  const TransferState& state = transfers_[lane_index][index];
  const auto stream = static_cast<size_t>(programs_.facts(state.work).stream);
  if (is_local(state.last, stream)) return start_own(state.last, stream, lane_index, index);
  const FoldedLane& lane = job_.lanes[lane_index];
  const FoldedTransfer& transfer = lane.transfers[index];
  const CollectivePlan& plan = plans_[state.work.index()][transfer.shape];
  HERDSIM_CHECK(now_ == engine_.now()) << "a transfer with others starts in the past";
  for (const RankClassId member : lane.members_of(transfer)) {
    hold_sms(member, plan.channels);
    book(member);
  }
  move(plan, lane_index, index, [this, lane_index, index] {
    begin_event();
    end_collective(lane_index, index);
    end_event();
  });
}

// Of the rank alone: own_transfers.cc.
inline void StepRun::start_own(RankClassId rank, size_t stream, uint32_t lane, uint32_t index) {
  LocalRun& local = local_[rank];
  const WorkId work = transfers_[lane][index].work;
  lose_sms(rank, plans_[work.index()][job_.lanes[lane].transfers[index].shape].channels);
  book(rank);
  local.ends[stream] = now_ + own_[rank][work.index()].alone;
  local.lane[stream] = lane;
  local.running |= 1U << stream;
  if (local.others != 0) enter_network(rank, stream);
}

void StepRun::end_collective(uint32_t lane_index, uint32_t index) {
  const FoldedLane& lane = job_.lanes[lane_index];
  const FoldedTransfer& transfer = lane.transfers[index];
  TransferState& state = transfers_[lane_index][index];
  const TransferState ended = state;
  const WorkId work = ended.work;
  const size_t stream = static_cast<size_t>(programs_.facts(work).stream);
  const bool is_own = is_local(ended.last, stream);
  if (!is_own) catch_up_members(lane, transfer);
  state = {};
  count_run(lane_index, index, work, ended.started);
  const CollectivePlan& plan = plans_[work.index()][transfer.shape];
  if (is_own) {
    lose_sms(ended.last, -plan.channels);
    finish(ended.last, stream, ended.started);
    return;
  }
  for (const RankClassId member : lane.members_of(transfer)) {
    hold_sms(member, -plan.channels);
    record_cause(member, programs_.next(member, stream), ended.last, ended.last_op);
    finish(member, stream, ended.started);
  }
}

// Of a transfer whose links nobody else uses.
Duration StepRun::alone_time(const CollectivePlan& plan, const FoldedLane& lane,
                             const FoldedTransfer& transfer) const {
  if (plan.volume == Bytes(0)) return plan.latency;
  const Bandwidth bound = std::min(plan.rate_cap, transfer.own_bound);
  return plan.latency + plan.volume / network_.rate_alone(lane.path(transfer), bound);
}

// The volume at the rate it gets, then the latency. A transfer that shares no link needs no
// network.
template <class Done>
void StepRun::move(const CollectivePlan& plan, uint32_t lane_index, uint32_t index, Done done) {
  const FoldedLane& lane = job_.lanes[lane_index];
  const FoldedTransfer& transfer = lane.transfers[index];
  if (transfer.crossings == 0 || plan.volume == Bytes(0)) {
    engine_.after(alone_time(plan, lane, transfer), done);
    return;
  }
  const std::vector<RankClassId>& met = local_streams_.met_by(lane_index, index);
  for (const RankClassId rank : met) {
    give_way(rank);
    ++local_[rank].others;
  }
  network_.start(plan.volume, lane.path(transfer), std::min(plan.rate_cap, transfer.own_bound),
                 [this, latency = plan.latency, met = &met, done] {
                   for (const RankClassId rank : *met) --local_[rank].others;
                   engine_.after(latency, done);
                 });
}

// -- Messages

inline StepRun::MessageRoute StepRun::route_of(RankClassId sender, OpId op) const {
  const Op& send = programs_.op(sender, op);
  const std::vector<ProgramId>& peers = job_.peers[job_.ranks[sender].program];
  const auto slot =
      static_cast<size_t>(std::find(peers.begin(), peers.end(), send.peer) - peers.begin());
  size_t first_plan = 0;
  for (size_t s = 0; s < slot; ++s) {
    first_plan += job_.lanes[job_.message_lane[s]].shapes.size();
  }
  const uint32_t lane = job_.message_lane[slot];
  const FoldedTransfer& transfer =
      job_.lanes[lane].transfers[job_.lanes[lane].transfer_of[sender.index()]];
  return {lane, job_.receivers[sender][slot], plans_[send.work.index()][first_plan + transfer.shape]};
}

void StepRun::start_send(RankClassId sender, OpId op) {
  HERDSIM_CHECK(now_ == engine_.now()) << "a message is sent in the past";
  const MessageRoute route = route_of(sender, op);
  hold_sms(sender, route.plan.channels);
  hold_sms(route.receiver, route.plan.channels);
  const OpId receive = programs_.op(sender, op).receive;
  take_off(route.receiver, receive);
  book(route.receiver);
  const Instant started = now_;
  move(route.plan, route.lane, job_.lanes[route.lane].transfer_of[sender.index()],
       [this, sender, op, started] {
    begin_event();
    end_send(sender, op, started);
    end_event();
  });
}

void StepRun::end_send(RankClassId sender, OpId op, Instant started) {
  const MessageRoute route = route_of(sender, op);
  const OpId receive = programs_.op(sender, op).receive;
  count_run(route.lane, job_.lanes[route.lane].transfer_of[sender.index()],
            programs_.op(sender, op).work, started);
  hold_sms(sender, -route.plan.channels);
  hold_sms(route.receiver, -route.plan.channels);
  land(route.receiver, receive);
  record(route.receiver, receive, started);
  record_cause(route.receiver, receive, sender, op);
  set_done(route.receiver, receive);
  finish(sender, static_cast<size_t>(programs_.facts(sender, op).stream), started);
  advance(route.receiver);
}

// Messages on the wire to a rank: a handful at a time.
inline void StepRun::take_off(RankClassId receiver, OpId receive) {
  flights_[receiver].push_back(receive);
}
inline void StepRun::land(RankClassId receiver, OpId receive) {
  std::vector<OpId>& flights = flights_[receiver];
  flights.erase(std::find(flights.begin(), flights.end(), receive));
}

inline bool StepRun::is_in_flight(RankClassId receiver, OpId receive) const {
  const std::vector<OpId>& flights = flights_[receiver];
  return std::find(flights.begin(), flights.end(), receive) != flights.end();
}

// -- The account

// Closes the interval of waiting and opens one for what the rank waits for now.
inline void StepRun::book(RankClassId rank) {
  RankState& state = ranks_[rank];
  if (state.computes) return;  // a kernel runs and is booked as a whole when it ends
  add(rank, state.term, now_ - state.since);
  state.since = now_;
  state.term = waiting_term(rank);
}

// The kernel that just ended: its own terms, then what its GPU and the transfers beside it added.
inline void StepRun::book_kernel(RankClassId rank) {
  RankState& state = ranks_[rank];
  const WorkCost& cost = costs_.works[programs_.work(rank, state.op)];
  for (size_t t = 0; t < kTimeTerms; ++t) add(rank, static_cast<TimeTerm>(t), cost.terms[t]);
  add(rank, TimeTerm::kCompute, state.uneven);
  add(rank, TimeTerm::kStraggler, state.alone - cost.total - state.uneven);
  add(rank, TimeTerm::kOther, now_ - state.started - state.alone);
  state.since = now_;
}

inline TimeTerm StepRun::waiting_term(RankClassId rank) {
  if (!programs_.is_open(rank, kCompute)) return TimeTerm::kBubble;
  const OpId* missing = programs_.first_missing(rank, kCompute);
  return missing == nullptr ? TimeTerm::kOther : term_of(rank, *missing);
}

// What an op that has not ended is waiting for or doing.
inline TimeTerm StepRun::term_of(RankClassId rank, OpId op) {
  const WorkFacts& work = programs_.facts(rank, op);
  if (work.kind == WorkKind::kReceive) {
    return is_in_flight(rank, op) ? TimeTerm::kExposedPp : TimeTerm::kBubble;
  }
  const size_t stream = static_cast<size_t>(work.stream);
  const OpId current = programs_.next(rank, stream);
  const WorkFacts& doing = programs_.facts(rank, current);
  if (!programs_.is_running(rank, stream)) {
    const OpId* missing = programs_.first_missing(rank, stream);
    return missing == nullptr ? doing.exposed_as : term_of(rank, *missing);
  }
  if (doing.kind != WorkKind::kCollective) return doing.exposed_as;
  const uint32_t lane = job_.lane_of_work[programs_.work(rank, current)];
  if (transfers_[lane][job_.lanes[lane].transfer_of[rank.index()]].running) {
    return doing.exposed_as;
  }
  // Arrived, and the others have not. At the end of the step that is the pipeline draining.
  return doing.is_world ? TimeTerm::kBubble : TimeTerm::kStraggler;
}

}  // namespace herdsim

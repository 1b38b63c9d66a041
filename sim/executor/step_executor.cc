#include "sim/executor/step_executor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>

#include "sim/base/check.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/engine/engine.h"
#include "sim/network/fluid_network.h"

namespace herdsim {
namespace {

constexpr size_t kCompute = static_cast<size_t>(Stream::kCompute);
constexpr size_t kReceives = static_cast<size_t>(Stream::kReceive);

constexpr uint16_t bit_of(size_t stream) { return static_cast<uint16_t>(1U << stream); }

// What every look at an op needs, in a quarter of its size: eight to a cache line. Its dependencies end where those of
// the next op begin.
struct OpFacts {
  uint32_t first_dependency = 0;
  uint32_t work = 0;
};

struct RankState {
  const Program* program = nullptr;
  const OpFacts* ops = nullptr;
  size_t first_word = 0;  // of the rank's bits in `done_`
  // By stream: the next op, or the one that runs, and the end of its ops.
  std::array<const OpId*, kStreams> next{}, last{};
  // By stream whose bit is in `blocked`: the first dependency that its next op was seen to wait for. Most looks at a
  // stream find it still missing, which takes one bit; those before it are not looked at again.
  std::array<const OpId*, kStreams> missing{};
  uint16_t blocked = 0;
  uint16_t open = 0;     // streams with an op left, but for receives, which the sender orders
  uint16_t running = 0;  // streams whose next op runs
  // The kernel that runs, if any.
  int64_t work_left = 0;  // SM-nanoseconds
  int64_t sms_held = 0;   // by transfers
  int64_t speed = 0;      // SMs it runs on
  Instant updated;
  EventId end;
  OpId op;
  Instant started;
  Duration alone, uneven;  // of it: without transfers beside it, and beyond the mean rank's
  // The account: since when the rank is in `term`.
  Instant since;
  TimeTerm term = TimeTerm::kBubble;
};

// Of a work, what every start and end of an op asks.
struct WorkFacts {
  WorkKind kind;
  Stream stream;
  TimeTerm exposed_as;
  bool is_world;
};

// One transfer of a lane: who has arrived at the collective that is next.
struct TransferState {
  uint32_t arrived = 0;
  WorkId work;
  bool running = false;
  Instant started;
  RankClassId last;  // who arrived last
  OpId last_op;
};

// How often one transfer carried each of its few works.
using RunCounts = std::vector<std::pair<WorkId, int64_t>>;

class StepExecutor {
 public:
  // Engine and network must outlive this object.
  StepExecutor(Engine& engine, FluidNetwork& network, const OpGraph& graph,
               const CostedGraph& costs, const JobMap& map, const FoldedJob& job,
               const NcclTuning& tuning, int64_t sms_per_gpu, const ExecutionChoice& choice)
      : graph_(graph),
        costs_(costs),
        map_(map),
        job_(job),
        sms_(sms_per_gpu),
        engine_(engine),
        network_(network),
        ranks_(job.ranks.size()),
        flights_(job.ranks.size()) {
    plan_transfers(tuning, choice.free_transfers);
    for (const FoldedLane& lane : job.lanes) {
      transfers_.emplace_back(lane.transfers.size());
      runs_.emplace_back(lane.transfers.size());
    }
    for (const Work& work : graph.works) {
      facts_.push_back(
          {work.kind, work.stream, work.exposed_as, work.communicator == Communicator::kWorld});
    }
    for (const Program& program : graph.programs) {
      std::vector<OpFacts> ops;
      ops.reserve(program.ops.size() + 1);
      for (const Op& op : program.ops) {
        ops.push_back({op.first_dependency, static_cast<uint32_t>(op.work.index())});
      }
      ops.push_back({static_cast<uint32_t>(program.dependencies.size()), 0});
      ops_.push_back(std::move(ops));
    }
    reset_ranks();
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

  // Starts the step now.
  void begin() {
    begin_ = last_end_ = engine_.now();
    for (RankState& state : ranks_) state.since = state.updated = begin_;
    for (size_t r = 0; r < ranks_.size(); ++r) advance(RankClassId(r));
  }
  // Calls `ended` after the last event of the instant at which the step's last op ended.
  void when_done(InlineCallback ended) {
    for (const FoldedRank& rank : job_.ranks) {
      ops_left_ += static_cast<int64_t>(graph_.programs[rank.program].ops.size());
    }
    ended_ = std::move(ended);
  }
  // As before begin(), with nothing recorded from now on.
  void rewind() {
    reset_ranks();
    std::fill(trace_of_.begin(), trace_of_.end(), kUntraced);
    outcome_ = {};
    outcome_.account.assign(job_.ranks.size(), {});
  }

  // What the step, which has ended or cannot, took.
  StepOutcome outcome() {
    outcome_.makespan = last_end_ - begin_;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      // A rank that is done early waits for the others to end the step.
      book_tail(RankClassId(r));
      collect_blocked(RankClassId(r));
    }
    outcome_.events = engine_.events_run();
    outcome_.is_cut_off = !network_.stalled().empty();
    list_runs();
    for (size_t l = 0; l < job_.capacity.size(); ++l) {
      outcome_.link_bytes.push_back(network_.carried(LinkId(l)));
    }
    return std::move(outcome_);
  }

 private:
  static constexpr uint32_t kUntraced = UINT32_MAX;

  // All at the head of their programs, nothing done.
  void reset_ranks() {
    ranks_.assign(ranks_.size(), {});
    size_t words = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      RankState& state = ranks_[RankClassId(r)];
      const ProgramId program = job_.ranks[RankClassId(r)].program;
      state.program = &graph_.programs[program];
      state.ops = ops_[program].data();
      state.first_word = words;
      words += state.program->ops.size() / 64 + 1;
      for (size_t stream = 0; stream < kStreams; ++stream) {
        const std::vector<OpId>& order = state.program->stream_order[stream];
        state.next[stream] = order.data();
        state.last[stream] = order.data() + order.size();
        if (stream != kReceives && !order.empty()) state.open |= bit_of(stream);
      }
    }
    done_.assign(words, 0);
  }

  // -- Programs

  const Op& op_of(RankClassId rank, OpId op) const { return ranks_[rank].program->ops[op.index()]; }
  WorkId work_of(RankClassId rank, OpId op) const {
    return WorkId(ranks_[rank].ops[op.index()].work);
  }
  const WorkFacts& facts_of(RankClassId rank, OpId op) const { return facts_[work_of(rank, op)]; }
  bool is_done(const RankState& state, OpId op) const {
    return (done_[state.first_word + op.index() / 64] >> (op.index() % 64) & 1) != 0;
  }
  void set_done(RankClassId rank, OpId op) {
    done_[ranks_[rank].first_word + op.index() / 64] |= uint64_t{1} << (op.index() % 64);
    last_end_ = engine_.now();
    if (--ops_left_ == 0) engine_.after(Duration::zero(), [this] { tell_end(); });
  }
  // Whoever hears of it may begin the next step.
  void tell_end() {
    InlineCallback ended = std::move(ended_);
    ended();
  }
  // The first op that the next one of a stream waits for; null: none. Requires: the stream is open.
  const OpId* first_missing(RankState& state, size_t stream) const {
    const bool was_blocked = (state.blocked & bit_of(stream)) != 0;
    if (was_blocked && !is_done(state, *state.missing[stream])) return state.missing[stream];
    const OpFacts* const op = state.ops + state.next[stream]->index();
    const OpId* const all = state.program->dependencies.data();
    const OpId* const end = all + op[1].first_dependency;
    const OpId* dependency = was_blocked ? state.missing[stream] + 1 : all + op->first_dependency;
    while (dependency != end && is_done(state, *dependency)) ++dependency;
    if (dependency == end) {
      state.blocked &= static_cast<uint16_t>(~bit_of(stream));
      return nullptr;
    }
    state.blocked |= bit_of(stream);
    state.missing[stream] = dependency;
    return dependency;
  }

  // Starts whatever can start on the rank, then books what its compute stream does now.
  void advance(RankClassId rank) {
    RankState& state = ranks_[rank];
    for (uint32_t idle = state.open & ~uint32_t{state.running}; idle != 0; idle &= idle - 1) {
      const auto stream = static_cast<size_t>(std::countr_zero(idle));
      if (first_missing(state, stream) != nullptr) continue;
      state.running |= bit_of(stream);
      start(rank, *state.next[stream]);
    }
    book(rank);
  }

  void start(RankClassId rank, OpId op) {
    switch (facts_of(rank, op).kind) {
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

  void finish(RankClassId rank, size_t stream, Instant started) {
    RankState& state = ranks_[rank];
    const OpId op = *state.next[stream];
    record(rank, op, started);
    set_done(rank, op);
    state.running &= static_cast<uint16_t>(~bit_of(stream));
    if (++state.next[stream] == state.last[stream]) {
      state.open &= static_cast<uint16_t>(~bit_of(stream));
    } else {
      fetch_ahead(state, stream);
    }
    advance(rank);
  }

  // A program is read once, in several places at a time, and is larger than a cache: its ops are
  // asked for before they are needed.
  static void fetch_ahead(const RankState& state, size_t stream) {
    constexpr ptrdiff_t kOps = 4, kDependencies = 2;
    const OpId* const next = state.next[stream];
    if (state.last[stream] - next <= kOps) return;
    __builtin_prefetch(&state.ops[next[kOps].index()]);
    const OpFacts& op = state.ops[next[kDependencies].index()];
    __builtin_prefetch(state.program->dependencies.data() + op.first_dependency);
  }

  void record(RankClassId rank, OpId op, Instant started) {
    const uint32_t trace = trace_of_[rank];
    if (trace != kUntraced) outcome_.spans[trace].push_back({op, started, engine_.now()});
    if (outcome_.records.empty()) return;
    OpRecord& kept = outcome_.records[rank][op.index()];
    kept.begin = started;
    kept.end = engine_.now();
  }

  // Who let a collective or a receive start.
  void record_cause(RankClassId rank, OpId op, RankClassId by, OpId cause) {
    if (outcome_.records.empty()) return;
    OpRecord& kept = outcome_.records[rank][op.index()];
    kept.by = by;
    kept.cause = cause;
  }

  // -- Compute

  void start_compute(RankClassId rank, OpId op) {
    book(rank);
    RankState& state = ranks_[rank];
    const WorkCost& cost = costs_.works[work_of(rank, op)];
    state.op = op;
    state.started = engine_.now();
    state.updated = engine_.now();
    state.uneven = beyond_mean(rank, op, cost);
    state.alone = at_speed_of(rank, cost.total + state.uneven);
    state.work_left = state.alone.nanoseconds() * sms_;
    schedule_end(rank);
  }

  // What the rank's share of uneven work adds to that of the mean rank; negative where it has less.
  Duration beyond_mean(RankClassId rank, OpId op, const WorkCost& cost) const {
    if (cost.uneven == Uneven::kNot) return Duration::zero();
    const double share = graph_.uneven[static_cast<size_t>(cost.uneven)].at(
        job_.ranks[rank].representative, op_of(rank, op).micro_batch);
    return nanoseconds(static_cast<int64_t>(
        std::floor(static_cast<double>(cost.uneven_time.nanoseconds()) * (share - 1))));
  }

  // A GPU at a fraction of the nominal speed takes that much longer.
  Duration at_speed_of(RankClassId rank, Duration nominal) const {
    const double factor = job_.ranks[rank].compute_factor;
    if (factor == 1) return nominal;
    return nanoseconds(
        static_cast<int64_t>(std::ceil(static_cast<double>(nominal.nanoseconds()) / factor)));
  }

  void schedule_end(RankClassId rank) {
    RankState& state = ranks_[rank];
    state.speed = std::max<int64_t>(1, sms_ - state.sms_held);
    const int64_t left = (state.work_left + state.speed - 1) / state.speed;
    state.end = engine_.after(nanoseconds(left), [this, rank] { end_compute(rank); });
  }

  void end_compute(RankClassId rank) {
    RankState& state = ranks_[rank];
    state.end = EventId();
    book_kernel(rank);
    finish(rank, kCompute, state.started);
  }

  // The host works beside everything its GPU does.
  void start_host(RankClassId rank, OpId op) {
    constexpr auto kHost = static_cast<size_t>(Stream::kHost);
    engine_.after(costs_.works[work_of(rank, op)].total,
                  [this, rank, started = engine_.now()] { finish(rank, kHost, started); });
  }

  // Transfers take and give back SMs; a kernel that runs goes on with what is left.
  void hold_sms(RankClassId rank, int64_t sms) {
    RankState& state = ranks_[rank];
    state.sms_held += sms;
    if (!state.end || sms == 0) return;
    const int64_t elapsed = (engine_.now() - state.updated).nanoseconds();
    state.work_left -= elapsed * state.speed;
    state.updated = engine_.now();
    engine_.cancel(state.end);
    schedule_end(rank);
  }

  // -- Collectives

  void count_run(uint32_t lane, uint32_t transfer, WorkId work, Instant started) {
    RunCounts& counts = runs_[lane][transfer];
    auto at = std::find_if(counts.rbegin(), counts.rend(),
                           [work](const auto& entry) { return entry.first == work; });
    if (at == counts.rend()) {
      counts.emplace_back(work, 1);
    } else {
      ++at->second;
    }
    if (!outcome_.spans.empty()) {
      outcome_.moves.push_back({lane, transfer, work, started, engine_.now()});
    }
  }

  void list_runs() {
    for (size_t lane = 0; lane < runs_.size(); ++lane) {
      for (size_t t = 0; t < runs_[lane].size(); ++t) {
        for (const auto& [work, runs] : runs_[lane][t]) {
          outcome_.transfers.push_back(
              {static_cast<uint32_t>(lane), static_cast<uint32_t>(t), work, runs});
        }
      }
    }
  }

  void plan_transfers(const NcclTuning& tuning, std::optional<TimeTerm> free) {
    const auto is_free = [&](const Work& work) { return work.exposed_as == free; };
    plans_.resize(graph_.works.size());
    for (size_t w = 0; w < graph_.works.size(); ++w) {
      const Work& work = graph_.works[WorkId(w)];
      if (work.kind == WorkKind::kCollective) {
        for (const GroupShape& shape : job_.lanes[map_.lane_of_work[WorkId(w)]].shapes) {
          plans_[w].push_back(is_free(work) ? CollectivePlan{} : plan_of(work, shape, tuning));
        }
      } else if (work.kind == WorkKind::kSend) {
        // By slot, then shape.
        for (const uint32_t lane : map_.message_lane) {
          for (const GroupShape& shape : job_.lanes[lane].shapes) {
            plans_[w].push_back(is_free(work) ? CollectivePlan{}
                                              : plan_collective(CollectiveKind::kSendRecv, work.bytes, shape, tuning));
          }
        }
      }
    }
  }

  void arrive(RankClassId rank, OpId op) {
    const WorkId work = work_of(rank, op);
    const uint32_t lane_index = map_.lane_of_work[work];
    const FoldedLane& lane = job_.lanes[lane_index];
    const uint32_t index = lane.transfer_of[rank.index()];
    TransferState& state = transfers_[lane_index][index];
    HERDSIM_CHECK(state.arrived == 0 || state.work == work)
        << "members of a group disagree on its next collective";
    state.work = work;
    state.last = rank;
    state.last_op = op;
    if (++state.arrived < lane.transfers[index].members) return;
    state.running = true;
    state.started = engine_.now();
    start_collective(lane_index, index);
  }

  void start_collective(uint32_t lane_index, uint32_t index) {
    const FoldedLane& lane = job_.lanes[lane_index];
    const FoldedTransfer& transfer = lane.transfers[index];
    const TransferState& state = transfers_[lane_index][index];
    const CollectivePlan& plan = plans_[state.work.index()][transfer.shape];
    for (const RankClassId member : lane.members_of(transfer)) {
      hold_sms(member, plan.channels);
      book(member);
    }
    move(plan, transfer, lane, [this, lane_index, index] { end_collective(lane_index, index); });
  }

  void end_collective(uint32_t lane_index, uint32_t index) {
    const FoldedLane& lane = job_.lanes[lane_index];
    const FoldedTransfer& transfer = lane.transfers[index];
    TransferState& state = transfers_[lane_index][index];
    const TransferState ended = state;
    const WorkId work = ended.work;
    state = {};
    count_run(lane_index, index, work, ended.started);
    const size_t stream = static_cast<size_t>(facts_[work].stream);
    const CollectivePlan& plan = plans_[work.index()][transfer.shape];
    for (const RankClassId member : lane.members_of(transfer)) {
      hold_sms(member, -plan.channels);
      record_cause(member, *ranks_[member].next[stream], ended.last, ended.last_op);
      finish(member, stream, ended.started);
    }
  }

  // The volume at the rate it gets, then the latency. A transfer that shares no link needs no
  // network.
  template <class Done>
  void move(const CollectivePlan& plan, const FoldedTransfer& transfer, const FoldedLane& lane,
            Done done) {
    const Bandwidth cap = std::min(plan.rate_cap, transfer.own_bound);
    if (transfer.crossings == 0 || plan.volume == Bytes(0)) {
      const Duration moving = plan.volume == Bytes(0) ? Duration::zero() : plan.volume / cap;
      engine_.after(plan.latency + moving, done);
      return;
    }
    network_.start(plan.volume, lane.path(transfer), cap,
                   [this, latency = plan.latency, done] { engine_.after(latency, done); });
  }

  // -- Messages

  struct MessageRoute {
    uint32_t lane;
    RankClassId receiver;
    const CollectivePlan& plan;
  };

  MessageRoute route_of(RankClassId sender, OpId op) const {
    const Op& send = op_of(sender, op);
    const std::vector<ProgramId>& peers = map_.peers[job_.ranks[sender].program];
    const auto slot =
        static_cast<size_t>(std::find(peers.begin(), peers.end(), send.peer) - peers.begin());
    size_t first_plan = 0;
    for (size_t s = 0; s < slot; ++s) {
      first_plan += job_.lanes[map_.message_lane[s]].shapes.size();
    }
    const uint32_t lane = map_.message_lane[slot];
    const FoldedTransfer& transfer =
        job_.lanes[lane].transfers[job_.lanes[lane].transfer_of[sender.index()]];
    return {lane, job_.peers[sender][slot], plans_[send.work.index()][first_plan + transfer.shape]};
  }

  void start_send(RankClassId sender, OpId op) {
    const MessageRoute route = route_of(sender, op);
    const FoldedLane& lane = job_.lanes[route.lane];
    const FoldedTransfer& transfer = lane.transfers[lane.transfer_of[sender.index()]];
    hold_sms(sender, route.plan.channels);
    hold_sms(route.receiver, route.plan.channels);
    const OpId receive = op_of(sender, op).receive;
    take_off(route.receiver, receive);
    book(route.receiver);
    const Instant started = engine_.now();
    move(route.plan, transfer, lane,
         [this, sender, op, started] { end_send(sender, op, started); });
  }

  void end_send(RankClassId sender, OpId op, Instant started) {
    const MessageRoute route = route_of(sender, op);
    const OpId receive = op_of(sender, op).receive;
    count_run(route.lane, job_.lanes[route.lane].transfer_of[sender.index()],
              op_of(sender, op).work, started);
    hold_sms(sender, -route.plan.channels);
    hold_sms(route.receiver, -route.plan.channels);
    land(route.receiver, receive);
    record(route.receiver, receive, started);
    record_cause(route.receiver, receive, sender, op);
    set_done(route.receiver, receive);
    finish(sender, static_cast<size_t>(facts_of(sender, op).stream), started);
    advance(route.receiver);
  }

  // Messages on the wire to a rank: a handful at a time.
  void take_off(RankClassId receiver, OpId receive) { flights_[receiver].push_back(receive); }
  void land(RankClassId receiver, OpId receive) {
    std::vector<OpId>& flights = flights_[receiver];
    flights.erase(std::find(flights.begin(), flights.end(), receive));
  }
  bool is_in_flight(RankClassId receiver, OpId receive) const {
    const std::vector<OpId>& flights = flights_[receiver];
    return std::find(flights.begin(), flights.end(), receive) != flights.end();
  }

  // -- The account

  void add(RankClassId rank, TimeTerm term, Duration time) {
    outcome_.account[rank][static_cast<size_t>(term)] += time.nanoseconds();
  }

  // Closes the interval of waiting and opens one for what the rank waits for now.
  void book(RankClassId rank) {
    RankState& state = ranks_[rank];
    if (state.end) return;  // a kernel runs and is booked as a whole when it ends
    add(rank, state.term, engine_.now() - state.since);
    state.since = engine_.now();
    state.term = waiting_term(rank);
  }

  // The kernel that just ended: its own terms, then what its GPU and the transfers beside it added.
  void book_kernel(RankClassId rank) {
    RankState& state = ranks_[rank];
    const WorkCost& cost = costs_.works[work_of(rank, state.op)];
    for (size_t t = 0; t < kTimeTerms; ++t) add(rank, static_cast<TimeTerm>(t), cost.terms[t]);
    add(rank, TimeTerm::kCompute, state.uneven);
    add(rank, TimeTerm::kStraggler, state.alone - cost.total - state.uneven);
    add(rank, TimeTerm::kOther, engine_.now() - state.started - state.alone);
    state.since = engine_.now();
  }

  TimeTerm waiting_term(RankClassId rank) {
    RankState& state = ranks_[rank];
    if ((state.open & bit_of(kCompute)) == 0) return TimeTerm::kBubble;
    const OpId* missing = first_missing(state, kCompute);
    return missing == nullptr ? TimeTerm::kOther : term_of(rank, *missing);
  }

  // What an op that has not ended is waiting for or doing.
  TimeTerm term_of(RankClassId rank, OpId op) {
    RankState& state = ranks_[rank];
    const WorkFacts& work = facts_of(rank, op);
    if (work.kind == WorkKind::kReceive) {
      return is_in_flight(rank, op) ? TimeTerm::kExposedPp : TimeTerm::kBubble;
    }
    const size_t stream = static_cast<size_t>(work.stream);
    const OpId current = *state.next[stream];
    const WorkFacts& doing = facts_of(rank, current);
    if ((state.running & bit_of(stream)) == 0) {
      const OpId* missing = first_missing(state, stream);
      return missing == nullptr ? doing.exposed_as : term_of(rank, *missing);
    }
    if (doing.kind != WorkKind::kCollective) return doing.exposed_as;
    const uint32_t lane = map_.lane_of_work[work_of(rank, current)];
    if (transfers_[lane][job_.lanes[lane].transfer_of[rank.index()]].running) {
      return doing.exposed_as;
    }
    // Arrived, and the others have not. At the end of the step that is the pipeline draining.
    return doing.is_world ? TimeTerm::kBubble : TimeTerm::kStraggler;
  }

  void book_tail(RankClassId rank) {
    const RankState& state = ranks_[rank];
    add(rank, state.term, outcome_.makespan - (state.since - begin_));
  }

  // -- Deadlock

  void collect_blocked(RankClassId rank) {
    constexpr size_t kEnough = 8;
    RankState& state = ranks_[rank];
    for (size_t stream = 0; stream < kStreams; ++stream) {
      if ((state.open & bit_of(stream)) == 0 || outcome_.deadlock.size() >= kEnough) continue;
      const OpId* missing = first_missing(state, stream);
      const Op& blocked = op_of(rank, *state.next[stream]);
      std::string why = "other members of its group";
      if (missing != nullptr) {
        const Op& before = op_of(rank, *missing);
        why = graph_.works[before.work].name + " of micro-batch " +
              std::to_string(before.micro_batch) + ", chunk " + std::to_string(before.chunk);
      }
      outcome_.deadlock.push_back({job_.ranks[rank].representative, graph_.works[blocked.work].name,
                                   blocked.micro_batch, blocked.chunk, std::move(why)});
    }
  }

  const OpGraph& graph_;
  const CostedGraph& costs_;
  const JobMap& map_;
  const FoldedJob& job_;
  const int64_t sms_;
  Engine& engine_;
  FluidNetwork& network_;
  TypedVector<RankClassId, RankState> ranks_;
  std::vector<std::vector<TransferState>> transfers_;  // by lane
  std::vector<std::vector<RunCounts>> runs_;           // likewise
  std::vector<std::vector<CollectivePlan>> plans_;     // by work and shape
  TypedVector<WorkId, WorkFacts> facts_;
  TypedVector<ProgramId, std::vector<OpFacts>> ops_;
  std::vector<uint64_t> done_;  // bits, by rank class and op
  TypedVector<RankClassId, std::vector<OpId>> flights_;
  TypedVector<RankClassId, uint32_t> trace_of_;
  Instant begin_, last_end_;
  int64_t ops_left_ = 0;  // counted where somebody waits for the end
  InlineCallback ended_;
  StepOutcome outcome_;
};

// Jobs side by side.
class SharedSteps {
 public:
  explicit SharedSteps(const std::vector<SharingJob>& jobs)
      : jobs_(jobs), network_(engine_, jobs.front().job.capacity.values(), LinkAccounting::kOn) {
    for (const SharingJob& j : jobs) {
      steps_.push_back(std::make_unique<StepExecutor>(engine_, network_, j.graph, j.costs, j.map,
                                                      j.job, j.tuning, j.sms_per_gpu,
                                                      ExecutionChoice{.traced = j.traced}));
    }
    outcomes_.resize(jobs.size());
  }

  std::vector<StepOutcome> run() {
    // The changes of a link that jobs share are in the list of each.
    for (const CapacityChange& change : jobs_.front().job.changes) {
      engine_.after(change.at,
                    [this, to = &change] { network_.set_capacity(to->link, to->capacity); });
    }
    for (size_t j = 0; j < jobs_.size(); ++j)
      engine_.after(jobs_[j].begins, [this, j] { begin(j); });
    engine_.run();
    for (size_t j = 0; j < jobs_.size(); ++j) {
      if (!outcomes_[j]) outcomes_[j] = steps_[j]->outcome();
    }
    std::vector<StepOutcome> all;
    for (std::optional<StepOutcome>& outcome : outcomes_) all.push_back(std::move(*outcome));
    return all;
  }

 private:
  void begin(size_t j) {
    steps_[j]->when_done([this, j] { end(j); });
    steps_[j]->begin();
  }
  void end(size_t j) {
    if (!outcomes_[j]) {
      outcomes_[j] = steps_[j]->outcome();
      ++ended_;
    }
    if (ended_ == jobs_.size()) return;
    steps_[j]->rewind();
    begin(j);
  }

  const std::vector<SharingJob>& jobs_;
  Engine engine_;
  FluidNetwork network_;
  std::vector<std::unique_ptr<StepExecutor>> steps_;
  std::vector<std::optional<StepOutcome>> outcomes_;
  size_t ended_ = 0;
};

}  // namespace

StepOutcome execute_step(const OpGraph& graph, const CostedGraph& costs, const JobMap& map,
                         const FoldedJob& job, const NcclTuning& tuning, int64_t sms_per_gpu,
                         const ExecutionChoice& choice) {
  Engine engine;
  FluidNetwork network(engine, job.capacity.values(), LinkAccounting::kOn);
  StepExecutor step(engine, network, graph, costs, map, job, tuning, sms_per_gpu, choice);
  for (const CapacityChange& change : job.changes) {
    engine.after(change.at,
                 [&network, to = &change] { network.set_capacity(to->link, to->capacity); });
  }
  step.begin();
  engine.run();
  return step.outcome();
}

std::vector<StepOutcome> execute_steps(const std::vector<SharingJob>& jobs) {
  HERDSIM_CHECK(!jobs.empty()) << "no jobs";
  return SharedSteps(jobs).run();
}

}  // namespace herdsim

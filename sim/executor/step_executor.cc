#include "sim/executor/step_executor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/check.h"
#include "sim/collectives/nccl_tuning.h"
#include "sim/engine/engine.h"
#include "sim/network/fluid_network.h"

namespace herdsim {
namespace {

constexpr size_t kCompute = static_cast<size_t>(Stream::kCompute);
constexpr size_t kReceives = static_cast<size_t>(Stream::kReceive);

struct RankState {
  std::array<uint32_t, kStreams> cursor{};  // next op of each stream, or the one that runs
  uint16_t running = 0;                     // bit by stream
  // The kernel that runs, if any.
  int64_t work_left = 0;  // SM-nanoseconds
  int64_t sms_held = 0;   // by transfers
  int64_t speed = 0;      // SMs it runs on
  Instant updated;
  EventId end;
  OpId op;
  Instant started;
  // The account: since when the rank is in `term`.
  Instant since;
  TimeTerm term = TimeTerm::kBubble;
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
  StepExecutor(const OpGraph& graph, const CostedGraph& costs, const JobMap& map,
               const FoldedJob& job, const NcclTuning& tuning, int64_t sms_per_gpu,
               const ExecutionChoice& choice)
      : graph_(graph),
        costs_(costs),
        map_(map),
        job_(job),
        sms_(sms_per_gpu),
        network_(engine_, job.capacity.values(), LinkAccounting::kOn),
        ranks_(job.ranks.size()),
        flights_(job.ranks.size()) {
    plan_transfers(tuning, choice.free_transfers);
    for (const FoldedLane& lane : job.lanes) {
      transfers_.emplace_back(lane.transfers.size());
      runs_.emplace_back(lane.transfers.size());
    }
    size_t words = 0;
    for (const FoldedRank& rank : job.ranks) {
      first_word_.push_back(words);
      words += graph.programs[rank.program].ops.size() / 64 + 1;
    }
    done_.assign(words, 0);
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

  StepOutcome run() {
    for (const CapacityChange& change : job_.changes) {
      engine_.after(change.at, [this, to = &change] { network_.set_capacity(to->link, to->capacity); });
    }
    for (size_t r = 0; r < ranks_.size(); ++r) advance(RankClassId(r));
    engine_.run();
    outcome_.makespan = last_end_ - Instant::start();
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

  // -- Programs -------------------------------------------------------------------------------------------------

  const Program& program(RankClassId rank) const {
    return graph_.programs[job_.ranks[rank].program];
  }
  const Op& op_of(RankClassId rank, OpId op) const { return program(rank).ops[op.index()]; }
  const Work& work_of(RankClassId rank, OpId op) const {
    return graph_.works[op_of(rank, op).work];
  }
  bool is_done(RankClassId rank, OpId op) const {
    return (done_[first_word_[rank.index()] + op.index() / 64] >> (op.index() % 64) & 1) != 0;
  }
  void set_done(RankClassId rank, OpId op) {
    done_[first_word_[rank.index()] + op.index() / 64] |= uint64_t{1} << (op.index() % 64);
    last_end_ = engine_.now();
  }
  // The op at the head of a stream, if the stream has one left.
  const OpId* head(RankClassId rank, size_t stream) const {
    const std::vector<OpId>& order = program(rank).stream_order[stream];
    const uint32_t cursor = ranks_[rank].cursor[stream];
    return cursor < order.size() ? &order[cursor] : nullptr;
  }
  const OpId* first_missing(RankClassId rank, OpId op) const {
    for (const OpId& dependency : program(rank).dependencies_of(op_of(rank, op))) {
      if (!is_done(rank, dependency)) return &dependency;
    }
    return nullptr;
  }

  // Starts whatever can start on the rank, then books what its compute stream does now.
  void advance(RankClassId rank) {
    RankState& state = ranks_[rank];
    for (size_t stream = 0; stream < kStreams; ++stream) {
      if (stream == kReceives || (state.running >> stream & 1) != 0) continue;
      const OpId* op = head(rank, stream);
      if (op == nullptr || first_missing(rank, *op) != nullptr) continue;
      state.running |= static_cast<uint16_t>(1U << stream);
      start(rank, *op);
    }
    book(rank);
  }

  void start(RankClassId rank, OpId op) {
    switch (work_of(rank, op).kind) {
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
    const OpId op = *head(rank, stream);
    record(rank, op, started);
    set_done(rank, op);
    state.running &= static_cast<uint16_t>(~(1U << stream));
    ++state.cursor[stream];
    advance(rank);
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

  // -- Compute --------------------------------------------------------------------------------------------------

  void start_compute(RankClassId rank, OpId op) {
    book(rank);
    RankState& state = ranks_[rank];
    state.op = op;
    state.started = engine_.now();
    state.updated = engine_.now();
    state.work_left = duration_on(rank, op).nanoseconds() * sms_;
    schedule_end(rank);
  }

  // What the rank's share of uneven work adds to that of the mean rank; negative where it has less.
  Duration beyond_mean(RankClassId rank, const Op& op, const WorkCost& cost) const {
    if (cost.uneven == Uneven::kNot) return Duration::zero();
    const double share = graph_.uneven[static_cast<size_t>(cost.uneven)].at(
        job_.ranks[rank].representative, op.micro_batch);
    return nanoseconds(static_cast<int64_t>(
        std::floor(static_cast<double>(cost.uneven_time.nanoseconds()) * (share - 1))));
  }

  // A GPU at a fraction of the nominal speed takes that much longer.
  Duration duration_on(RankClassId rank, OpId op) const {
    const WorkCost& cost = costs_.works[op_of(rank, op).work];
    const Duration nominal = cost.total + beyond_mean(rank, op_of(rank, op), cost);
    const double factor = job_.ranks[rank].compute_factor;
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
    engine_.after(costs_.works[op_of(rank, op).work].total,
                  [this, rank, started = engine_.now()] { finish(rank, kHost, started); });
  }

  // Transfers take and give back SMs; a kernel that runs goes on with what is left.
  void hold_sms(RankClassId rank, int64_t sms) {
    RankState& state = ranks_[rank];
    state.sms_held += sms;
    if (!state.end) return;
    const int64_t elapsed = (engine_.now() - state.updated).nanoseconds();
    state.work_left -= elapsed * state.speed;
    state.updated = engine_.now();
    engine_.cancel(state.end);
    schedule_end(rank);
  }

  // -- Collectives ----------------------------------------------------------------------------------------------

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
    const auto plan = [&](const Work& work, CollectiveKind kind, const GroupShape& shape) {
      return work.exposed_as == free ? CollectivePlan{}
                                     : plan_collective(kind, work.bytes, shape, tuning);
    };
    plans_.resize(graph_.works.size());
    for (size_t w = 0; w < graph_.works.size(); ++w) {
      const Work& work = graph_.works[WorkId(w)];
      if (work.kind == WorkKind::kCollective) {
        for (const GroupShape& shape : job_.lanes[map_.lane_of_work[WorkId(w)]].shapes) {
          plans_[w].push_back(plan(work, work.collective, shape));
        }
      } else if (work.kind == WorkKind::kSend) {
        // By slot, then shape.
        for (const uint32_t lane : map_.message_lane) {
          for (const GroupShape& shape : job_.lanes[lane].shapes) {
            plans_[w].push_back(plan(work, CollectiveKind::kSendRecv, shape));
          }
        }
      }
    }
  }

  void arrive(RankClassId rank, OpId op) {
    const WorkId work = op_of(rank, op).work;
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
    const size_t stream = static_cast<size_t>(graph_.works[work].stream);
    const CollectivePlan& plan = plans_[work.index()][transfer.shape];
    for (const RankClassId member : lane.members_of(transfer)) {
      hold_sms(member, -plan.channels);
      record_cause(member, *head(member, stream), ended.last, ended.last_op);
      finish(member, stream, ended.started);
    }
  }

  // The volume at the rate it gets, then the latency. A transfer that shares no link needs no network.
  template <class Done>
  void move(const CollectivePlan& plan, const FoldedTransfer& transfer, const FoldedLane& lane,
            Done done) {
    const Bandwidth cap = std::min(plan.rate_cap, transfer.own_bound);
    if (transfer.crossings == 0 || plan.volume == Bytes(0)) {
      const Duration moving = plan.volume == Bytes(0) ? Duration::zero() : plan.volume / cap;
      engine_.after(plan.latency + moving, done);
      return;
    }
    network_.start(plan.volume, lane.path(transfer), cap, [this, latency = plan.latency, done] {
      engine_.after(latency, done);
    });
  }

  // -- Messages -------------------------------------------------------------------------------------------------

  struct MessageRoute {
    uint32_t lane;
    RankClassId receiver;
    const CollectivePlan& plan;
  };

  MessageRoute route_of(RankClassId sender, OpId op) const {
    const Op& send = op_of(sender, op);
    const std::vector<ProgramId>& peers = map_.peers[job_.ranks[sender].program];
    const auto slot = static_cast<size_t>(std::find(peers.begin(), peers.end(), send.peer) -
                                          peers.begin());
    size_t first_plan = 0;
    for (size_t s = 0; s < slot; ++s) {
      first_plan += job_.lanes[map_.message_lane[s]].shapes.size();
    }
    const uint32_t lane = map_.message_lane[slot];
    const FoldedTransfer& transfer =
        job_.lanes[lane].transfers[job_.lanes[lane].transfer_of[sender.index()]];
    return {lane, job_.peers[sender][slot],
            plans_[send.work.index()][first_plan + transfer.shape]};
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
    finish(sender, static_cast<size_t>(work_of(sender, op).stream), started);
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

  // -- The account ----------------------------------------------------------------------------------------------

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
    const WorkCost& cost = costs_.works[op_of(rank, state.op).work];
    for (size_t t = 0; t < kTimeTerms; ++t) add(rank, static_cast<TimeTerm>(t), cost.terms[t]);
    const Duration alone = duration_on(rank, state.op);
    const Duration uneven = beyond_mean(rank, op_of(rank, state.op), cost);
    add(rank, TimeTerm::kCompute, uneven);
    add(rank, TimeTerm::kStraggler, alone - cost.total - uneven);
    add(rank, TimeTerm::kOther, engine_.now() - state.started - alone);
    state.since = engine_.now();
  }

  TimeTerm waiting_term(RankClassId rank) const {
    const OpId* op = head(rank, kCompute);
    if (op == nullptr) return TimeTerm::kBubble;
    const OpId* missing = first_missing(rank, *op);
    return missing == nullptr ? TimeTerm::kOther : term_of(rank, *missing);
  }

  // What an op that has not ended is waiting for or doing.
  TimeTerm term_of(RankClassId rank, OpId op) const {
    const Work& work = work_of(rank, op);
    if (work.kind == WorkKind::kReceive) {
      return is_in_flight(rank, op) ? TimeTerm::kExposedPp : TimeTerm::kBubble;
    }
    const size_t stream = static_cast<size_t>(work.stream);
    const OpId current = *head(rank, stream);
    const Work& doing = work_of(rank, current);
    if ((ranks_[rank].running >> stream & 1) == 0) {
      const OpId* missing = first_missing(rank, current);
      return missing == nullptr ? doing.exposed_as : term_of(rank, *missing);
    }
    if (doing.kind != WorkKind::kCollective) return doing.exposed_as;
    const uint32_t lane = map_.lane_of_work[op_of(rank, current).work];
    if (transfers_[lane][job_.lanes[lane].transfer_of[rank.index()]].running) {
      return doing.exposed_as;
    }
    // Arrived, and the others have not. At the end of the step that is the pipeline draining.
    return doing.communicator == Communicator::kWorld ? TimeTerm::kBubble : TimeTerm::kStraggler;
  }

  void book_tail(RankClassId rank) {
    const RankState& state = ranks_[rank];
    add(rank, state.term, outcome_.makespan - state.since.since_start());
  }

  // -- Deadlock -------------------------------------------------------------------------------------------------

  void collect_blocked(RankClassId rank) {
    constexpr size_t kEnough = 8;
    for (size_t stream = 0; stream < kStreams; ++stream) {
      if (stream == kReceives || outcome_.deadlock.size() >= kEnough) continue;
      const OpId* op = head(rank, stream);
      if (op == nullptr) continue;
      const OpId* missing = first_missing(rank, *op);
      const Op& blocked = op_of(rank, *op);
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
  Engine engine_;
  FluidNetwork network_;
  TypedVector<RankClassId, RankState> ranks_;
  std::vector<std::vector<TransferState>> transfers_;  // by lane
  std::vector<std::vector<RunCounts>> runs_;           // likewise
  std::vector<std::vector<CollectivePlan>> plans_;     // by work and shape
  std::vector<size_t> first_word_;                     // by rank class
  std::vector<uint64_t> done_;                         // bits
  TypedVector<RankClassId, std::vector<OpId>> flights_;
  TypedVector<RankClassId, uint32_t> trace_of_;
  Instant last_end_;
  StepOutcome outcome_;
};

}  // namespace

StepOutcome execute_step(const OpGraph& graph, const CostedGraph& costs, const JobMap& map,
                         const FoldedJob& job, const NcclTuning& tuning, int64_t sms_per_gpu,
                         const ExecutionChoice& choice) {
  return StepExecutor(graph, costs, map, job, tuning, sms_per_gpu, choice).run();
}

}  // namespace herdsim

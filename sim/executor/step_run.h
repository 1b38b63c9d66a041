// One job's step on an engine and a network that other jobs may share: what step_executor.h
// promises, event by event.
//
//   StepRun step(engine, network, graph, costs, job, tuning, sms, {});
//   step.begin();
//   engine.run();
//   StepOutcome outcome = step.outcome();
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/base/inline_callback.h"
#include "sim/engine/engine.h"
#include "sim/executor/rank_programs.h"
#include "sim/executor/step_executor.h"
#include "sim/network/fluid_network.h"

namespace herdsim {

class StepRun {
 public:
  // Engine, network and what the job is made of must outlive this object.
  StepRun(Engine& engine, FluidNetwork& network, const OpGraph& graph, const CostedGraph& costs,
          const FoldedJob& job, const NcclTuning& tuning, const Multiprocessors& sms, const ExecutionChoice& choice);
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  // Starts the step now.
  void begin();
  // Calls `ended` after the last event of the instant at which the step's last op ended.
  void when_done(InlineCallback ended);
  // As before begin(), with nothing recorded from now on.
  void rewind();
  // What the step, which has ended or cannot, took. To be asked once.
  StepOutcome outcome();

 private:
  static constexpr uint32_t kUntraced = UINT32_MAX;

  // What a rank's GPU does, and its account.
  struct RankState {
    // The kernel that runs, if any.
    int64_t work_left = 0;  // nanoseconds times parts of an SM
    int64_t sms_lost = 0;   // to transfers, in parts
    int64_t speed = 0;      // parts of SMs that it runs on
    Instant updated;
    EventId end;
    OpId op;
    Instant started;
    Duration alone, uneven;  // of it: without transfers beside it, and beyond the mean rank's
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

  struct MessageRoute {
    uint32_t lane;
    RankClassId receiver;
    const CollectivePlan& plan;
  };

  // Ops
  void advance(RankClassId rank);
  void start(RankClassId rank, OpId op);
  void finish(RankClassId rank, size_t stream, Instant started);
  void set_done(RankClassId rank, OpId op);
  void tell_end();
  void record(RankClassId rank, OpId op, Instant started);
  void record_cause(RankClassId rank, OpId op, RankClassId by, OpId cause);

  // Compute
  void start_compute(RankClassId rank, OpId op);
  Duration beyond_mean(RankClassId rank, OpId op, const WorkCost& cost) const;
  Duration at_speed_of(RankClassId rank, Duration nominal) const;
  void schedule_end(RankClassId rank);
  void end_compute(RankClassId rank);
  void start_host(RankClassId rank, OpId op);
  void hold_sms(RankClassId rank, int64_t channels);

  // Collectives
  void plan_transfers(const NcclTuning& tuning, std::optional<TimeTerm> free);
  void arrive(RankClassId rank, OpId op);
  void start_collective(uint32_t lane_index, uint32_t index);
  void end_collective(uint32_t lane_index, uint32_t index);
  template <class Done>
  void move(const CollectivePlan& plan, const FoldedTransfer& transfer, const FoldedLane& lane,
            Done done);
  void count_run(uint32_t lane, uint32_t transfer, WorkId work, Instant started);
  void list_runs();

  // Messages
  MessageRoute route_of(RankClassId sender, OpId op) const;
  void start_send(RankClassId sender, OpId op);
  void end_send(RankClassId sender, OpId op, Instant started);
  void take_off(RankClassId receiver, OpId receive);
  void land(RankClassId receiver, OpId receive);
  bool is_in_flight(RankClassId receiver, OpId receive) const;

  // The account
  void add(RankClassId rank, TimeTerm term, Duration time);
  void book(RankClassId rank);
  void book_kernel(RankClassId rank);
  TimeTerm waiting_term(RankClassId rank);
  TimeTerm term_of(RankClassId rank, OpId op);
  void book_tail(RankClassId rank);
  void collect_blocked(RankClassId rank);

  const OpGraph& graph_;
  const CostedGraph& costs_;
  const FoldedJob& job_;
  const int64_t sms_, lost_to_a_channel_;  // in parts of an SM
  Engine& engine_;
  FluidNetwork& network_;
  RankPrograms programs_;
  TypedVector<RankClassId, RankState> ranks_;
  std::vector<std::vector<TransferState>> transfers_;  // by lane
  std::vector<std::vector<RunCounts>> runs_;           // likewise
  std::vector<std::vector<CollectivePlan>> plans_;     // by work and shape
  TypedVector<RankClassId, std::vector<OpId>> flights_;
  TypedVector<RankClassId, uint32_t> trace_of_;
  Instant begin_, last_end_;
  int64_t ops_left_ = 0;  // counted where somebody waits for the end
  InlineCallback ended_;
  StepOutcome outcome_;
};

}  // namespace herdsim

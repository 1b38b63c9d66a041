// One job's step on an engine and a network that other jobs may share: what step_executor.h
// promises, event by event.
//
//   StepRun step(engine, network, graph, costs, job, tuning, sms, {}, SharedLinks::kMayBeLocal);
//   step.begin();
//   engine.run();
//   StepOutcome outcome = step.outcome();
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/inline_callback.h"
#include "sim/engine/engine.h"
#include "sim/executor/local_order.h"
#include "sim/executor/local_streams.h"
#include "sim/executor/rank_programs.h"
#include "sim/executor/step_executor.h"
#include "sim/network/fluid_network.h"

namespace herdsim {

class StepRun {
 public:
  // Engine, network and what the job is made of must outlive this object. SharedLinks::kMayBeLocal
  // only where nobody else starts transfers on the network or changes its links, but for the job's
  // own changes.
  StepRun(Engine& engine, FluidNetwork& network, const OpGraph& graph, const CostedGraph& costs,
          const FoldedJob& job, const NcclTuning& tuning, const Multiprocessors& sms, const ExecutionChoice& choice,
          SharedLinks shared);
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
  static constexpr auto kCompute = static_cast<size_t>(Stream::kCompute);

  // What a rank's GPU does, and its account.
  struct RankState {
    // The kernel that runs, if any.
    int64_t work_left = 0;  // nanoseconds times parts of an SM
    int64_t sms_lost = 0;   // to transfers, in parts
    int64_t speed = 0;      // parts of SMs that it runs on
    Instant updated;
    bool computes = false;
    EventId end;  // where it is an event
    OpId op;
    Instant started;
    Duration alone, uneven;  // of it: without transfers beside it, and beyond the mean rank's
    // The account: since when the rank is in `term`.
    Instant since;
    TimeTerm term = TimeTerm::kBubble;
  };

  // Local ops of a rank end without events: see run_ahead.cc.
  struct LocalRun {
    const LocalOrder* order = nullptr;  // null: every op is an event
    uint32_t alike = 0;                 // ranks of one number take the same for the same segment
    std::array<Instant, kLocalStreams> ends{};  // of what runs, by stream
    std::array<uint32_t, kLocalStreams> lane{};
    uint32_t running = 0;                     // bits, by stream
    uint32_t in_network = 0;                  // likewise: has met others, and ends by an event
    uint32_t others = 0;  // transfers on links that the rank's local ones use
    uint32_t stretch = 0, done = 0;           // of it, local ops
    bool is_touched = false;
    EventId wake;
    Instant wakes;
    // The segment whose outcome is to be kept when it has gone on as if alone.
    const LocalSegment* watched = nullptr;
    Instant watched_since;
    uint32_t watched_stretch = 0;
    std::array<int64_t, kTimeTerms> account_before{};
  };

  // Of a work that is a transfer of a rank's own.
  struct OwnTransfer {
    Duration alone;  // where nobody else uses its links
    bool crosses_links = false;
  };

  // What a segment of one shape does.
  struct SegmentRun {
    bool is_known = false;
    Duration takes;
    std::array<int64_t, kTimeTerms> account{};
  };
  // On ranks that are alike and have lost so much to transfers with others.
  struct SegmentRuns {
    int64_t sms_lost = 0;
    std::vector<SegmentRun> runs;  // by shape
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

  // Ahead of the clock
  void plan_local_runs();
  std::vector<LocalFacts> local_works(RankClassId rank) const;
  bool is_local(RankClassId rank, size_t stream) const {
    return runs_ahead_ && local_streams_.is_local(rank, stream);
  }
  // Of the stretch that the rank is in.
  const StretchShape& shape_at(RankClassId rank) const {
    const LocalRun& local = local_[rank];
    return shapes_[local.order->stretches()[local.stretch].shape];
  }
  const LocalSegment* segment_after(RankClassId rank, const LocalOrder::Stretch& stretch, uint32_t ops_done) const;
  bool crosses_links(RankClassId rank, const StretchShape& shape, const LocalSegment& segment) const;
  void count_done(RankClassId rank, uint32_t ops);
  SegmentRuns& runs_with(uint32_t alike, int64_t sms_lost);
  const SegmentRun& run_of(RankClassId rank, const LocalOrder::Stretch& stretch, const LocalSegment& segment,
                           SegmentRuns& runs) const;
  Duration least_time(RankClassId rank, const LocalOrder::Stretch& stretch, const LocalSegment& segment);
  // Of the so many-th local op of a stretch.
  WorkId work_in(RankClassId rank, const LocalOrder::Stretch& stretch, uint32_t number) const {
    return programs_.work(rank, OpId(stretch.first_op + shapes_[stretch.shape].ops[number]));
  }
  void begin_event();
  void end_event();
  void touch(RankClassId rank);
  void catch_up(RankClassId rank);
  void run_local(RankClassId rank, Instant until, bool inclusive);
  void end_local(RankClassId rank, size_t stream);
  void pass_segments(RankClassId rank);
  void close_interval(RankClassId rank);
  void keep_watched(RankClassId rank);
  void plan_wake(RankClassId rank);
  Instant next_wake(RankClassId rank);
  void wake(RankClassId rank);
  // Transfers of its own over links that others may use
  void start_own(RankClassId rank, size_t stream, uint32_t lane, uint32_t index);
  void give_way(RankClassId rank);
  void enter_network(RankClassId rank, size_t stream);
  void leave_network(RankClassId rank, size_t stream);
  void add_lone_bytes();
  const FoldedTransfer& own_transfer(RankClassId rank, uint32_t lane) const {
    return job_.lanes[lane].transfers[job_.lanes[lane].transfer_of[rank.index()]];
  }

  // Compute
  void start_compute(RankClassId rank, OpId op);
  Duration beyond_mean(RankClassId rank, OpId op, const WorkCost& cost) const;
  Duration at_speed_of(RankClassId rank, Duration nominal) const;
  // In parts of SMs.
  int64_t speed_beside(int64_t sms_lost) const {
    return std::max(Multiprocessors::kParts, sms_ - sms_lost);
  }
  // The last nanosecond may have had room for more than what was left.
  static Duration kernel_time(int64_t work, int64_t speed) {
    return nanoseconds(std::max<int64_t>(0, (work + speed - 1) / speed));
  }
  void schedule_end(RankClassId rank);
  void end_compute(RankClassId rank);
  void start_host(RankClassId rank, OpId op);
  void hold_sms(RankClassId rank, int64_t channels);
  void lose_sms(RankClassId rank, int64_t channels);

  // Collectives
  void plan_transfers(const NcclTuning& tuning, std::optional<TimeTerm> free);
  void arrive(RankClassId rank, OpId op);
  void catch_up_members(const FoldedLane& lane, const FoldedTransfer& transfer);
  void start_collective(uint32_t lane_index, uint32_t index);
  void end_collective(uint32_t lane_index, uint32_t index);
  Duration alone_time(const CollectivePlan& plan, const FoldedLane& lane,
                      const FoldedTransfer& transfer) const;
  template <class Done>
  void move(const CollectivePlan& plan, uint32_t lane_index, uint32_t index, Done done);
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
  // Ahead of the clock, where that is done.
  bool runs_ahead_ = false;
  LocalStreams local_streams_;
  TypedVector<RankClassId, std::vector<OwnTransfer>> own_;  // by work
  TypedVector<LinkId, Bytes> lone_bytes_;  // beside those that the network counts
  StretchShapes shapes_;
  std::vector<LocalOrder> orders_;
  TypedVector<RankClassId, LocalRun> local_;
  // By what ranks are alike; `least_` also by shape of the segment.
  std::vector<std::vector<SegmentRuns>> known_;
  std::vector<std::vector<Duration>> least_;  // infinite: not worked out
  std::vector<RankClassId> touched_;            // by the current event
  Instant until_;                               // up to which local ops may end now ...
  bool is_inclusive_ = false;                   // ... and at it

  Instant now_;  // of what is looked at: a rank's own clock may be behind the engine's
  Instant begin_, last_end_;
  int64_t ops_left_ = 0;  // counted where somebody waits for the end
  InlineCallback ended_;
  StepOutcome outcome_;
};

inline void StepRun::set_done(RankClassId rank, OpId op) {
  programs_.set_done(rank, op);
  last_end_ = std::max(last_end_, now_);
  if (--ops_left_ == 0) engine_.after(Duration::zero(), [this] { tell_end(); });
}

// A GPU at a fraction of the nominal speed takes that much longer.
inline Duration StepRun::at_speed_of(RankClassId rank, Duration nominal) const {
  const double factor = job_.ranks[rank].compute_factor;
  if (factor == 1) return nominal;
  return nanoseconds(
      static_cast<int64_t>(std::ceil(static_cast<double>(nominal.nanoseconds()) / factor)));
}

inline void StepRun::add(RankClassId rank, TimeTerm term, Duration time) {
  outcome_.account[rank][static_cast<size_t>(term)] += time.nanoseconds();
}

}  // namespace herdsim

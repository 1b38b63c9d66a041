// Runs the op graph of one step on a folded (or unfolded) job: streams, rendezvous, contention, and a time account a rank.
//
// Rules
//   - An op starts when the op before it on its stream has ended and every op it depends on has ended.
//   - A collective starts when its last member arrives. It pays its latency and moves its volume at the least of its
//     algorithm's rate, its own links and a max-min share of shared links. It ends for all members at once.
//   - A send moves when it is issued (the receiver has posted its buffer); the receive op ends with it.
//   - A transfer holds `channels` SMs of each of its ranks while it runs; compute beside it loses so many times
//     `lost_per_transfer_sm`, down to one SM. Work is counted in nanoseconds times parts of an SM, whole numbers, so slowing down and speeding up again loses nothing.
//   - The host launches ahead of the GPU: its ops run in order on a stream of their own, and a kernel waits for its launch.
//   - Every nanosecond of every rank is booked to one TimeTerm: what it computes, or what its next kernel waits for.
//
// Simultaneous events may run in any order: nothing here depends on it, which is what lets one class stand for many ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/costing/cost_pass.h"
#include "sim/executor/background_flows.h"
#include "sim/executor/critical_path.h"
#include "sim/metrics/step_result.h"
#include "sim/network/burst_link.h"
#include "sim/observe/span.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

// An op that can never end, and why.
struct BlockedOp {
  RankId rank;
  std::string op;      // "forward of ..." is the caller's business: this is the work's name
  int32_t micro_batch = -1, chunk = -1;
  std::string waits_for;
};

struct OpSpan {
  OpId op;
  Instant begin, end;
};

// How often a transfer of a class of groups (or senders) ran, and when.
struct TransferRuns {
  uint32_t lane, transfer;  // of FoldedJob
  WorkId work;
  int64_t runs = 0;
};
struct TransferSpan {
  uint32_t lane, transfer;
  WorkId work;
  Instant begin, end;
};

struct StepOutcome {
  Duration makespan;
  TypedVector<RankClassId, std::array<int64_t, kTimeTerms>> account;  // nanoseconds; each sums to makespan
  std::vector<BlockedOp> deadlock;  // empty unless the step cannot finish; then the rest means little
  int64_t events = 0;  // of the engine; fewer than ops where ranks run ahead
  // By traced rank class, in the order given: every op it ran.
  std::vector<std::vector<OpSpan>> spans;
  TypedVector<LinkId, Bytes> link_bytes;  // by link class, carried by one link of it
  std::vector<TransferRuns> transfers;    // by lane, transfer and the order of first runs
  std::vector<TransferSpan> moves;        // every one, by end; only where a rank is traced
  bool is_cut_off = false;                // a transfer waits for a link that carries nothing
  OpRecords records;                      // of every op, where they were asked for
};

// A GPU's streaming multiprocessors, and how many of them a kernel loses to each that a transfer beside it holds.
struct Multiprocessors {
  static constexpr int64_t kParts = 64;  // of an SM, that shares are rounded to
  int64_t count = 132;
  double lost_per_transfer_sm = 1;
};

struct ExecutionChoice {
  std::vector<RankClassId> traced;
  bool keep_records = false;     // for the critical path: 32 bytes an op and rank class
  // Every end of an op is an event, as it is where ops are traced or recorded. Otherwise what a rank does by itself has
  // none (sim/executor/run_ahead.cc); all but `events` comes out the same.
  bool op_by_op = false;
  // Transfers that are waited for as this take no time, no links and no SMs; their members still meet.
  std::optional<TimeTerm> free_transfers;
};

StepOutcome execute_step(const OpGraph& graph, const CostedGraph& costs, const FoldedJob& job,
                         const NcclTuning& tuning, const Multiprocessors& sms, const ExecutionChoice& choice = {});

// A job among others on the same links.
struct SharingJob {
  const OpGraph& graph;
  const CostedGraph& costs;
  const FoldedJob& job;  // of fold_together(): one table of links for all
  const NcclTuning& tuning;
  Multiprocessors sms;
  std::vector<RankClassId> traced;
  Duration begins;  // its first step, after the run's begin
  bool op_by_op = false;       // as ExecutionChoice says
};

// A link that carries more than it sustains for a while.
struct Burst {
  LinkId link;  // index of the link class
  BurstRates rates;
};

// What there is on the network beside the steps.
struct BesideSteps {
  std::vector<BackgroundFlow> flows = {};
  std::vector<Burst> bursts = {};
};

struct SharedOutcome {
  std::vector<StepOutcome> steps;        // by job
  std::vector<BackgroundOutcome> flows;  // by flow
};

// The first step of each of several jobs that share the network. A job repeats its step until every
// first step has ended, so that the longest is never alone. `link_bytes` and `events` of a step are
// of everything until it ended. Requires: each of them ends its step when it is alone.
SharedOutcome execute_steps(const std::vector<SharingJob>& jobs, const BesideSteps& beside = {});

}  // namespace herdsim

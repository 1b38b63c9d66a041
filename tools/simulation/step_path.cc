#include "tools/simulation/step_path.h"

#include <algorithm>

namespace herdsim {
namespace {

constexpr size_t kMostRecords = 64'000'000;

// What the op would take if nothing beside it slowed it.
Duration alone(const RunStep& step, const CostedGraph& costs, const PathOp& at, const Op& op) {
  const Work& work = step.graph.works[op.work];
  const Duration took = at.end - at.begin;
  switch (work.kind) {
    case WorkKind::kCompute:
    case WorkKind::kHost:
      return std::min(took, costs.works[op.work].total);
    case WorkKind::kCollective: {
      const FoldedLane& lane = step.job.lanes[step.job.lane_of_work[op.work]];
      const FoldedTransfer& transfer = lane.transfers[lane.transfer_of[at.rank.index()]];
      return std::min(took, plan_of(work, lane.shapes[transfer.shape], step.tuning).alone());
    }
    case WorkKind::kSend: {
      const std::vector<ProgramId>& peers = step.job.peers[step.job.ranks[at.rank].program];
      const auto slot =
          static_cast<size_t>(std::find(peers.begin(), peers.end(), op.peer) - peers.begin());
      const FoldedLane& lane = step.job.lanes[step.job.message_lane[slot]];
      const FoldedTransfer& transfer = lane.transfers[lane.transfer_of[at.rank.index()]];
      const CollectivePlan plan = plan_collective(CollectiveKind::kSendRecv, work.bytes,
                                                  lane.shapes[transfer.shape], step.tuning);
      return std::min(took, plan.alone());
    }
    case WorkKind::kReceive:
      break;
  }
  return took;
}

// A kernel's own terms, then what a slow GPU and the transfers beside it added; a transfer is what
// waiting for it is.
TimeAccount terms_of(const RunStep& step, const CostedGraph& costs, const PathOp& at,
                     const Op& op) {
  const Work& work = step.graph.works[op.work];
  Duration left = at.end - at.begin;
  TimeAccount terms{};
  const auto take = [&](TimeTerm term, Duration time) {
    const Duration taken = std::clamp(time, Duration::zero(), left);
    terms[static_cast<size_t>(term)] += taken;
    left -= taken;
  };
  if (work.kind != WorkKind::kCompute) {
    take(work.exposed_as, left);
    return terms;
  }
  const WorkCost& cost = costs.works[op.work];
  for (size_t t = 0; t < kTimeTerms; ++t) take(static_cast<TimeTerm>(t), cost.terms[t]);
  const double factor = step.job.ranks[at.rank].compute_factor;
  take(TimeTerm::kStraggler, seconds_rounded_up(cost.total.seconds() * (1 / factor - 1)));
  take(TimeTerm::kOther, left);
  return terms;
}

CostedGraph costs_without(CostedGraph costs, TimeTerm term) {
  for (WorkCost& cost : costs.works) {
    Duration& share = cost.terms[static_cast<size_t>(term)];
    cost.total -= share;
    share = Duration::zero();
  }
  return costs;
}

Duration simulated_without(const RunStep& step, const CostedGraph& costs, const Multiprocessors& sms,
                           TimeTerm term) {
  FoldedJob job = step.job;
  if (term == TimeTerm::kStraggler) {
    for (FoldedRank& rank : job.ranks) rank.compute_factor = 1;
  }
  return execute_step(step.graph, costs_without(costs, term), job, step.tuning, sms,
                      {.free_transfers = term})
      .makespan;
}

Duration bounded_without(const StepResult& result, TimeTerm term) {
  int64_t least = result.step_time.nanoseconds();
  for (const RankClassTime& alike : result.class_account) {
    least = std::min(least, alike.nanoseconds[static_cast<size_t>(term)]);
  }
  return result.step_time - nanoseconds(least);
}

}  // namespace

bool keeps_records(const OpGraph& graph, const FoldedJob& job) {
  size_t ops = 0;
  for (const FoldedRank& rank : job.ranks) ops += graph.programs[rank.program].ops.size();
  return ops <= kMostRecords;
}

std::vector<CriticalOp> critical_ops(const RunStep& step, const CostedGraph& costs) {
  std::vector<CriticalOp> ops;
  for (const PathOp& at : critical_path(step.graph, step.job, step.outcome.records)) {
    const FoldedRank& rank = step.job.ranks[at.rank];
    const Op& op = step.graph.programs[rank.program].ops[at.op.index()];
    ops.push_back({.rank = rank.representative,
                   .work = op.work,
                   .micro_batch = op.micro_batch,
                   .chunk = op.chunk,
                   .phase = op.phase,
                   .begin = at.begin,
                   .end = at.end,
                   .alone = alone(step, costs, at, op),
                   .terms = terms_of(step, costs, at, op)});
  }
  return ops;
}

std::vector<StepWithout> steps_without(const RunStep& step, const CostedGraph& costs,
                                       const Multiprocessors& sms, const StepResult& result) {
  const Duration loader = result.step_time - step.outcome.makespan;
  std::vector<StepWithout> out;
  for (size_t t = 0; t < kTimeTerms; ++t) {
    const auto term = static_cast<TimeTerm>(t);
    if (term == TimeTerm::kCompute || result.account_rank_nanoseconds[t] == 0) continue;
    const bool bounded = term == TimeTerm::kBubble || term == TimeTerm::kLoader;
    out.push_back({.term = term,
                   .step = bounded ? bounded_without(result, term)
                                   : loader + simulated_without(step, costs, sms, term),
                   .simulated = !bounded});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const StepWithout& a, const StepWithout& b) { return a.step < b.step; });
  return out;
}

}  // namespace herdsim

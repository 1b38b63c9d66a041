// The critical path of any job against the step that it explains.
#include "sim/executor/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/executor/job_cases.h"
#include "tests/sim/executor/planned_job.h"

namespace herdsim {
namespace {

struct Walked {
  StepOutcome outcome;
  std::vector<PathOp> path;
};

Walked walked(const PlannedJob& job, const FoldedJob& folded) {
  Walked w;
  w.outcome = job.run(folded, ExecutionChoice{.keep_records = true});
  w.path = critical_path(job.graph, folded, w.outcome.records);
  return w;
}

TEST(CriticalPath, tiles_the_step_from_its_beginning_to_its_end) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const Walked w = walked(job, job.fold_with(job.classes()));
    ASSERT_FALSE(w.path.empty());
    Instant at = Instant::start();
    for (const PathOp& op : w.path) {
      ASSERT_EQ(op.begin, at);
      at = op.end;
    }
    EXPECT_EQ(at - Instant::start(), w.outcome.makespan);
  }
}

TEST(CriticalPath, of_a_folded_job_is_as_long_as_that_of_the_whole_one) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const Walked folded = walked(job, job.fold_with(job.classes()));
    const Walked whole = walked(job, job.fold_with(job.singles()));
    EXPECT_EQ(folded.path.back().end, whole.path.back().end);
  }
}

TEST(CriticalPath, keeping_records_changes_nothing) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const FoldedJob folded = job.fold_with(job.classes());
    const StepOutcome without = job.run(folded);
    EXPECT_TRUE(without.records.empty());
    const StepOutcome with = job.run(folded, ExecutionChoice{.keep_records = true});
    EXPECT_EQ(with.makespan, without.makespan);
    EXPECT_EQ(with.account.values(), without.account.values());
  }
}

TEST(CriticalPath, moves_to_another_rank_only_by_a_message_or_a_collective) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const FoldedJob folded = job.fold_with(job.classes());
    const Walked w = walked(job, folded);
    for (size_t i = 1; i < w.path.size(); ++i) {
      if (w.path[i].rank == w.path[i - 1].rank) continue;
      const PathOp& before = w.path[i - 1];
      const Op& op = job.graph.programs[folded.ranks[before.rank].program].ops[before.op.index()];
      const WorkKind kind = job.graph.works[op.work].kind;
      EXPECT_TRUE(kind == WorkKind::kSend || kind == WorkKind::kCollective);
    }
  }
}

TEST(CriticalPath, of_one_gpu_with_a_free_host_is_all_that_it_computes) {
  const PlannedJob job(load_scenario(
      "llama3-405b-16384", small_job({}, {"software.host_microseconds_per_layer_forward=0",
                                          "software.host_microseconds_per_layer_backward=0"})));
  const Walked w = walked(job, job.fold_with(job.classes()));
  Duration computed;
  for (const PathOp& op : w.path) {
    const WorkId work = job.graph.programs[ProgramId(0)].ops[op.op.index()].work;
    if (job.graph.works[work].kind == WorkKind::kCompute) computed += op.end - op.begin;
  }
  EXPECT_EQ(computed, w.outcome.makespan);
}

// Lengthening an op of the path lengthens the step by as much, for the path is still there;
// shortening it cannot shorten the step by more. Here all kernels become faster by a tenth.
TEST(CriticalPath, what_its_kernels_take_bounds_what_faster_kernels_give) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    PlannedJob job(c.scenario());
    const FoldedJob folded = job.fold_with(job.classes());
    const Walked w = walked(job, folded);
    Duration kernels;
    for (const PathOp& op : w.path) {
      const Program& program = job.graph.programs[folded.ranks[op.rank].program];
      const Work& work = job.graph.works[program.ops[op.op.index()].work];
      if (work.kind == WorkKind::kCompute) kernels += op.end - op.begin;
    }
    for (WorkCost& cost : job.costs.works) {
      cost.total = nanoseconds(cost.total.nanoseconds() - cost.total.nanoseconds() / 10);
      cost.uneven = Uneven::kNot;
    }
    const double gained = (w.outcome.makespan - job.run(folded).makespan).seconds();
    // Of uneven work the share beyond the mean may be all that the path has of it.
    const bool uneven = std::any_of(job.graph.uneven.begin(), job.graph.uneven.end(),
                                    [](const UnevenLoad& load) { return !load.empty(); });
    if (!uneven) {
      EXPECT_LE(gained, 0.1 * kernels.seconds() * 1.001 + 1e-6);
    }
  }
}

}  // namespace
}  // namespace herdsim

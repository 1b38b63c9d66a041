// From a scenario to the answer of one step: builds the fabric, lowers the work, costs it, folds, executes, and sums up.
// Where other jobs are on the machine, all of them begin when the scenario says, each repeats its step until the longest
// has ended one, and the answer is each job's first.
#pragma once

#include <vector>

#include "sim/costing/cost_pass.h"
#include "sim/metrics/step_result.h"
#include "sim/observe/schedule_pass.h"
#include "sim/observe/span.h"
#include "sim/opgraph/op_graph.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/job_on_machine.h"
#include "tools/simulation/machine_memo.h"

namespace herdsim {

struct StepOptions {
  bool fold = true;                  // false: simulate every rank
  std::vector<RankId> traced_ranks;  // whose spans to keep; none by default
  bool critical_path = false;        // keep which ops decide how long the step takes
  bool without = false;              // run it again without each loss: StepSimulation::without
  // Nothing but `result` is asked for: a step of many micro-batches may then be found by two of few, with the same answer.
  bool result_alone = false;
};

// One transfer as planned for the most common group of its communicator.
struct TransferLine {
  WorkId work;
  GroupShape group;  // of a phase that runs in parts of it, a part
  Bytes bytes;
  CollectivePlan plan;
};

// An op of the critical path (sim/executor/critical_path.h); of a class of ranks the lowest stands for all.
struct CriticalOp {
  RankId rank;
  WorkId work;
  int32_t micro_batch = -1, chunk = -1;
  StepPhase phase = StepPhase::kUnknown;
  Instant begin, end;
  Duration alone;      // what it would take on a nominal GPU, or with the links to itself; never more than it took
  TimeAccount terms{};  // sums to end - begin
};

// The step if one loss were away: what hiding or removing it whole can give at most.
struct StepWithout {
  TimeTerm term;
  Duration step;
  bool simulated = true;  // false: a bound from the account
};

struct StepSimulation {
  StepResult result;
  StepTrace trace;  // of traced_ranks
  std::vector<SchedulePass> passes;  // of the traced ranks that are a stage's first of replica 0
  // What `explain` prints: the work, what it costs, and how transfers run.
  OpGraph graph;
  CostedGraph costs;
  std::vector<TransferLine> transfers;
  // From the beginning of the step to its end, where asked for; empty where a job of many classes has more ops than are
  // kept: rank by rank that is some thousand GPUs.
  std::vector<CriticalOp> critical_path;
  std::vector<StepWithout> without;  // where asked for: of each term that takes time, the one that gives most first
  std::vector<StepResult> others;  // of the other jobs, in their order
};

// Throws: SpecError where the schedule deadlocks, or a dead part of the network halts the job,
// naming ranks and ops; and where the step is longer than its account can hold (tools/simulation/step_length.h).
StepSimulation simulate_step(const Scenario& scenario, const StepOptions& options);

// The same answer, with what the machine's steps have in common found once. May be called by several threads.
StepSimulation simulate_step(const Scenario& scenario, const StepOptions& options, MachineMemo& machines);

}  // namespace herdsim

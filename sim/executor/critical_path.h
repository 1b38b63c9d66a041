// The chain of ops that decides how long a step takes, through ranks and collectives.
//
// Every op starts at the very instant at which the last of what it waits for ends: the op before it on its stream, an op
// it depends on, the last member to arrive at a collective, a message. Walking back from the op that ends last, always to
// what was waited for last, gives ops that follow each other without a gap from the beginning of the step to its end. To
// make the step shorter, one of them must become shorter; by how much it then gets shorter another chain decides.
//
// Where two things end at one instant, the op before on the stream counts as what was waited for, then dependencies in
// their order; where several members arrive at a collective together, the one that the chain came from. So the chain stays
// on a rank where it can.
//
//   for (const PathOp& op : critical_path(graph, job, outcome.records)) ...   // ends at outcome.makespan
#pragma once

#include <vector>

#include "sim/base/time.h"
#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

// When an op ran, and who let it. `by` and `cause` tell of a collective the member that arrived last and its op; of a
// receive the sender and its send; otherwise nothing.
struct OpRecord {
  Instant begin, end;
  RankClassId by;
  OpId cause;
};

// By rank class, then op.
using OpRecords = TypedVector<RankClassId, std::vector<OpRecord>>;

struct PathOp {
  RankClassId rank;  // of a collective: the member that arrived last
  OpId op;           // a message is its send
  Instant begin, end;
};

// In the order of time; the first begins with the step, each other where the one before it ends.
// Requires: records of a step that ended.
// Complexity: linear in the ops of the programs and in the dependencies along the path.
std::vector<PathOp> critical_path(const OpGraph& graph, const FoldedJob& job,
                                  const OpRecords& records);

}  // namespace herdsim

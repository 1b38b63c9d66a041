// Emits the program of one pipeline stage: stamps the templates of its units along the schedule's
// passes.
#pragma once

#include <vector>

#include "workloads/known_passes.h"
#include "workloads/message_table.h"
#include "workloads/parameter_buckets.h"
#include "workloads/step_layout.h"
#include "workloads/step_work.h"

namespace herdsim {

// What a stage needs to know; the references must outlive the call.
struct StageQuestion {
  const WorkloadSpec& spec;
  const StepLayout& layout;
  const StepWork& work;
  const std::vector<ChunkBuckets>& buckets;  // by model chunk
  const TypedVector<WorkId, Work>& works;
  int64_t stage = 0;
  WorkId optimizer;
  const Program* like = nullptr;  // of another stage, which is much alike: how much room to make
  bool op_by_op = false;          // nothing is repeated as a block
};

// What the stages of a step tell each other.
struct StepTables {
  MessageTable forward, backward;
  KnownPasses passes = {};
};

struct StageProgram {
  Program program;
  std::vector<OpId> sends;
};

// Ensures: each send carries in Op::receive the model chunk it goes to, for connect_messages(); the
// tables know every op that receives on this stage.
StageProgram stage_program(const StageQuestion& question, StepTables& tables);

}  // namespace herdsim

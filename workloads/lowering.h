// From a model, a parallel plan and a schedule to the op graph of one optimizer step.
//
// Order inside a rank: parameter gathers (where the plan shards them), the passes of the schedule,
// gradient reductions as each layer's last backward pass ends, the gradient norm over all ranks,
// the optimizer. Transfers between stages carry one rank's part of the activation and match by
// micro-batch and chunk, so the order of arrival is the sender's.
#pragma once

#include <vector>

#include "workloads/layer_work.h"
#include "workloads/schedules/schedule.h"
#include "workloads/stage_layout.h"

namespace herdsim {

struct LoweringChoice {
  bool op_by_op = false;  // passes that are alike are not repeated as blocks: the same ops
};

// Requires: the plan, training and schedule passed validation together; `layouts` has one entry a
// pipeline stage.
OpGraph lower_step(const WorkloadSpec& spec, const ScheduleRow& schedule,
                   const std::vector<StageLayout>& layouts, const LoweringChoice& choice = {});

ScheduleShape schedule_shape(const ParallelPlan& plan, const Training& training);

// Floating-point operations of the model itself in one step, whole job: 6 a matrix parameter and
// token, and attention's two products forward and four backward, counted over the causal half or
// the full square. Recomputation and document masks do not change it: this is the numerator of MFU.
// Of a mixture of experts the parameters are those a token visits. The output matrix counts,
// whether it is tied or not; the input embedding, a look-up, does not. Sources that count 6 for
// every parameter are higher by 6 vocabulary * hidden a token: 0.5 % at 405B, 6 % at 8B.
struct ModelFlops {
  Flops causal, full;
};
ModelFlops model_flops(const ModelArchitecture& model, const Training& training);

}  // namespace herdsim

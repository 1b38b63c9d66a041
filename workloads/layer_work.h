// What one transformer layer, embedding or output head does on one rank, as small templates of work
// and order: one a pass.
#pragma once

#include "workloads/work_template.h"

namespace herdsim {

// Backward passes come whole or split, as zero-bubble schedules need them.
struct PassTemplates {
  WorkTemplate forward;
  WorkTemplate backward;  // input and weight gradients, and the recomputation where there is one
  WorkTemplate backward_input;   // the same without what only weight gradients need
  WorkTemplate backward_weight;  // the rest
};

struct LayerKind {
  bool recomputes = true;  // as training.recompute says, or else keeping everything
  bool has_experts = false;
};

// Each appends the distinct pieces of work it needs to `works`.
PassTemplates layer_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works,
                              const LayerKind& kind);
PassTemplates embedding_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works);
// The last norm, the logits and the loss.
PassTemplates head_templates(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works);

}  // namespace herdsim

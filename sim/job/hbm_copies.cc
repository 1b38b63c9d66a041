#include "sim/job/hbm_copies.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/text.h"

namespace herdsim {

void settle_hbm_copies(CampaignSpec& spec) {
  const Bytes needed = spec.checkpoints.hbm_a_gpu;
  if (needed == Bytes(0)) return;
  if (!spec.recovery.keeps_processes) {
    drop_hbm_copies(spec.checkpoints);
    spec.checkpoints.warnings.push_back(
        fmt::format("checkpoint.policy: \"{}\" keeps nothing in HBM, since recovery.policy \"{}\" "
                    "ends every process; local-rollback and replica-level do not",
                    spec.request.checkpoint.policy, spec.recovery.name));
    return;
  }
  if (!spec.request.hbm_free || needed <= *spec.request.hbm_free) return;
  Faults faults;
  faults.add({.field = "checkpoint.policy",
              .problem = fmt::format(
                  "\"{}\" keeps {} of snapshots in every GPU's memory, of which the "
                  "step leaves {} on its fullest",
                  spec.request.checkpoint.policy, to_text(needed), to_text(*spec.request.hbm_free)),
              .allowed = "a policy without HBM, such as in-memory; or a step that takes less"});
  faults.throw_if_any();
}

}  // namespace herdsim

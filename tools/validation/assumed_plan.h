// What a run must have done that does not say how it shared its model out: the least that holds it.
#pragma once

#include <cstdint>

#include "tools/scenario/scenario.h"

namespace herdsim {

struct ModelRanks {
  int64_t tp = 1, pp = 1;
};

// For bf16 weights and fp32 gradients, 6 bytes a parameter that a sharded optimizer leaves whole:
// as many tensor ranks as it takes, in powers of two up to a host's, and then stages that divide
// the layers. Both 1 where one GPU holds them, or no plan of this kind does. Requires: the
// scenario's model, GPUs, host size, device and batch.
ModelRanks assumed_model_ranks(const Scenario& scenario);

// Data-parallel ranks that share out the state, 16 bytes a parameter: the fewest whole hosts that
// hold it. Requires: the same, and the plan's tp, pp and dp.
int64_t assumed_shard_ranks(const Scenario& scenario);

}  // namespace herdsim

// The words of a run table, as sources write them: "FULL_SHARD (FSDP, mixed_precision DEFAULT)",
// "fp8-rowwise", "selective: saves q,k,v only (save_qkv_proj)".
#pragma once

#include <optional>

#include "tools/validation/run_table.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

// Empty where the cell is blank or says nothing that is known.
struct RowWords {
  std::optional<Sharding> sharding;
  std::optional<DataType> precision;
  std::optional<Recompute> recompute;
  double recompute_fraction = 1;  // of the layers
};

RowWords words_of(const RunRow& row);

}  // namespace herdsim

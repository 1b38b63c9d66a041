// The words of a run table, as sources write them: "FULL_SHARD (FSDP, mixed_precision DEFAULT)",
// "fp8-rowwise", "selective: saves q,k,v only (save_qkv_proj)".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/validation/run_table.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

// Empty where the cell is blank or says nothing that is known.
struct RowWords {
  std::optional<Sharding> sharding;
  // Data-parallel ranks that share out the state, where the others hold copies: "FSDP(128)xDP(4)". kUnstated where there
  // are copies and nothing says of how many ranks: "HSDP".
  static constexpr int64_t kUnstated = -1;
  int64_t shard_ranks = 0;
  std::optional<DataType> precision;
  std::optional<Recompute> recompute;
  double recompute_fraction = 1;  // of the layers
  std::vector<RecomputeModule> recompute_modules;  // of kSelective; empty: core attention
  bool one_chunk_a_stage = false;  // "1F1B" and nothing more
  bool no_tp_overlap = false;      // "no TP userbuffers overlap", "without overlap flags"
  bool no_dp_overlap = false;      // "without overlap flags"
  bool async_tp = false;           // "async TP" of the compiler: products split in chunks by rank
  bool compiled = false;           // "torch.compile", or what needs it
  bool fp8_by_row = false;         // "fp8-rowwise"
  std::vector<int64_t> layers_per_stage;  // "4, 4, 5, 3"
};

RowWords words_of(const RunRow& row);

// Of a name, however it is written: in lower case, without what is neither letter nor digit.
std::string letters_and_digits(std::string_view name);

}  // namespace herdsim

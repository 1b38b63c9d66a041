// A row of a run table that states everything, and what rows refer to.
#pragma once

#include "tools/validation/row_scenario.h"

namespace herdsim {

inline const RowParts& parts() {
  static const RowParts kParts({});
  return kParts;
}

inline RunRow complete_row() {
  RunRow row;
  row.id = "mine";
  row.software = "megatron-te";
  row.gpu = "H100";
  row.layers = 32;
  row.hidden = 4096;
  row.ffn = 14336;
  row.heads = 32;
  row.kv_heads = 8;
  row.head_dim = 128;
  row.mlp_gated = true;
  row.vocab = 128256;
  row.seq_len = 8192;
  row.num_gpus = 64;
  row.gpus_per_node = 8;
  row.tp = 4;
  row.sp = true;
  row.cp = 1;
  row.pp = 4;
  row.vp = 4;
  row.micro_batch = 1;
  row.global_batch = 64;
  row.fsdp_zero = "DDP+dist-optimizer (ZeRO-1)";
  row.precision = "bf16";
  row.recompute = "none";
  row.attention_kernel = "cudnn9";
  return row;
}

}  // namespace herdsim

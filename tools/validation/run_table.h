// A table of training runs as people keep them: one row a run, one column a fact, a blank where a
// fact is not stated.
//
// Columns, in any order; others are ignored and any may be left out:
//   id, software, model, gpu            what ran on what
//   source_where                        where it was published
//   layers, hidden, ffn, mlp_gated, heads, kv_heads, head_dim, vocab, seq_len
//   params_B                                                      billions, of all parameters; tells whether embeddings
//                                                                 are tied
//   experts, experts_per_token, shared_experts, expert_ffn
//   expert_capacity                     times its mean share that an expert takes, no token beyond;
//                                       blank: none is dropped
//   num_gpus, gpus_per_node, tp, sp, cp, pp, vp, ep, dp, fsdp_zero, micro_batch, global_batch
//   precision, recompute, attention_kernel, pp_schedule, overlap_notes
//                                       words, read by row_words.h
//   layers_per_stage                    "4 4 4 3"; or in the column notes, behind "layers per stage"
//   interconnect                        "8x100 Gbps NICs per node", read by interconnect_words.h
//   software_set                        fields of the software's record that this run sets otherwise:
//                                       "logit_bytes=52; gradient_reduce_type=FP32"
//   gpu_power_W, hbm_GBps               of this run's GPUs, where not the usual ones
//   net_allreduce_GBps, net_allgather_GBps, net_reducescatter_GBps
//                                       bus bandwidth of the whole job at 1 GiB, measured in it
//   peak_mem_alloc_GB, peak_mem_reserved_GB, target_step_time_s
//                                       what was measured; only compared with. Memory as PyTorch's
//                                       allocator counts it, in 2^30 bytes
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

struct RunRow {
  std::string id, source_where, software, model, gpu;
  std::optional<int64_t> layers, hidden, ffn, heads, kv_heads, head_dim, vocab, seq_len;
  std::optional<int64_t> experts, experts_per_token, shared_experts, expert_ffn;
  std::optional<bool> mlp_gated;
  std::optional<double> billion_parameters, expert_capacity;
  std::optional<int64_t> num_gpus, gpus_per_node, tp, cp, pp, vp, ep, dp;
  std::optional<bool> sp;
  std::optional<int64_t> micro_batch, global_batch;
  std::vector<std::string> software_sets;  // "logit_bytes=52"
  std::string fsdp_zero, precision, recompute, attention_kernel, pp_schedule, overlap_notes;
  std::string interconnect, layers_per_stage;
  std::optional<double> gpu_power_watts, hbm_gigabytes_per_second;
  std::optional<double> allreduce_gigabytes_per_second, allgather_gigabytes_per_second,
      reducescatter_gigabytes_per_second;
  std::optional<double> peak_memory_gigabytes, reserved_gigabytes, target_step_time_s;
  // What the row's source says beside its columns or against them, as "vocab = 50257", and where;
  // the members above are so (source_facts.h).
  std::vector<std::string> by_source;
  std::string stated;
  // All cells that say what ran, as they stand: equal in rows of one run. Empty: of no table.
  std::string configuration;
};

// `file` is only named in faults. A row without an id is called by its line.
// Throws: SpecError with every faulty cell by line and column name: what is no number, not
// positive, or not whole where a count is meant; a table without the columns id or software.
std::vector<RunRow> parse_run_table(std::string_view text, const std::string& file);

// Throws: SpecError, also where the file cannot be read.
std::vector<RunRow> read_run_table(const std::string& path);

}  // namespace herdsim

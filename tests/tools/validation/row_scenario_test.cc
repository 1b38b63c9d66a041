#include "tools/validation/row_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

using testing::Contains;
using testing::HasSubstr;

const RowParts& parts() {
  static const RowParts kParts({});
  return kParts;
}

RunRow complete_row() {
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

double step_time(const RunRow& row) {
  const RowScenario read = scenario_of_row(row, parts());
  EXPECT_EQ(read.skipped_because, "");
  return simulate_step(read.scenario, {}).result.step_time.seconds();
}

TEST(RowScenario, a_complete_row_assumes_nothing) {
  const RowScenario read = scenario_of_row(complete_row(), parts());
  EXPECT_EQ(read.skipped_because, "");
  EXPECT_THAT(read.assumed, testing::IsEmpty());
  EXPECT_EQ(read.scenario.plan.dp, 4);
  EXPECT_EQ(read.scenario.training.schedule, "interleaved-1f1b");
  EXPECT_EQ(read.scenario.plan.shard, Sharding::kZero1);
}

TEST(RowScenario, blanks_take_the_documented_defaults_and_are_named) {
  RunRow row = complete_row();
  row.kv_heads = row.head_dim = row.gpus_per_node = row.tp = row.micro_batch = std::nullopt;
  row.pp = row.vp = row.cp = std::nullopt;
  row.mlp_gated = row.sp = std::nullopt;
  row.precision = row.recompute = row.fsdp_zero = row.attention_kernel = "";
  const RowScenario read = scenario_of_row(row, parts());
  EXPECT_EQ(read.skipped_because, "");
  EXPECT_THAT(read.assumed,
              testing::UnorderedElementsAre(
                  "kv_heads = 32", "head_dim = 128", "mlp_gated = true", "gpus_per_node = 8",
                  "tp = 1", "cp = 1", "pp = 1", "micro_batch = 1", "precision = bf16",
                  "recompute = none", "fsdp_zero = ZeRO-1", "attention_kernel = cudnn9"));
}

// GPT-3 on 96 GPUs of 80 GB: 1.05 TB of weights and gradients. The 48 GB of an 8B fit one GPU.
TEST(RowScenario, a_model_that_one_gpu_does_not_hold_is_shared_out_as_little_as_it_must) {
  RunRow row = complete_row();
  row.tp = row.pp = row.vp = row.dp = std::nullopt;
  RowScenario read = scenario_of_row(row, parts());
  EXPECT_EQ(read.scenario.plan.tp, 1);
  row.layers = 96;
  row.hidden = 12288;
  row.ffn = 49152;
  row.heads = row.kv_heads = 96;
  row.mlp_gated = false;
  row.num_gpus = 96;
  row.global_batch = 1152;
  read = scenario_of_row(row, parts());
  EXPECT_EQ(read.skipped_because, "");
  EXPECT_EQ(read.scenario.plan.tp, 8);
  EXPECT_EQ(read.scenario.plan.pp, 3);
  EXPECT_THAT(read.assumed, testing::IsSupersetOf({"tp = 8", "pp = 3"}));
  row.fsdp_zero = "FULL_SHARD";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.tp, 1) << "FSDP shares weights out over replicas";
  row.fsdp_zero = "";
  row.pp = 1;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.tp, 1) << "what is stated is not doubted";
}

// Sizes of Llama 3 8B and of a model of 1.3B with one matrix for both ends.
TEST(RowScenario, embeddings_are_tied_where_the_count_of_parameters_says_so) {
  RunRow row = complete_row();
  const auto tied = [&](std::optional<double> billions) {
    row.billion_parameters = billions;
    return scenario_of_row(row, parts()).scenario.model.tied_embeddings;
  };
  EXPECT_FALSE(tied(std::nullopt));
  EXPECT_FALSE(tied(8.03));
  EXPECT_TRUE(tied(7.505));
  EXPECT_FALSE(tied(70));  // neither
  row.layers = 16;
  row.hidden = 2048;
  row.ffn = 8192;
  row.kv_heads = 32;
  row.head_dim = 64;
  row.vocab = 131072;
  EXPECT_TRUE(tied(1.342));
  EXPECT_FALSE(tied(1.61));
  row.layers = 96;
  row.hidden = 12288;
  row.ffn = 49152;
  row.heads = row.kv_heads = 96;
  row.head_dim = 128;
  row.mlp_gated = false;
  row.vocab = 51200;
  EXPECT_FALSE(tied(174.6));
}

TEST(RowScenario, each_reason_to_leave_a_row_out_is_named) {
  const auto reason = [](void (*change)(RunRow&)) {
    RunRow row = complete_row();
    change(row);
    return scenario_of_row(row, parts()).skipped_because;
  };
  EXPECT_EQ(reason([](RunRow& r) { r.layers = r.vocab = std::nullopt; }),
            "not stated: layers, vocab");
  EXPECT_THAT(reason([](RunRow& r) { r.ep = 8; }), HasSubstr("mixture of experts"));
  EXPECT_THAT(reason([](RunRow& r) { r.software = "abacus"; }), HasSubstr("abacus"));
  EXPECT_THAT(reason([](RunRow& r) { r.gpu = "H1000"; }), HasSubstr("H1000"));
  EXPECT_THAT(reason([](RunRow& r) { r.tp = 5; }), HasSubstr("does not divide num_gpus"));
  EXPECT_THAT(reason([](RunRow& r) { r.global_batch = 63; }), HasSubstr("training.global_batch"));
  EXPECT_THAT(reason([](RunRow& r) {
                r.num_gpus = 12;
                r.tp = r.pp = 1;
                r.vp = 1;
              }),
              HasSubstr("no whole number of nodes"));
}

TEST(RowScenario, words_of_sources_are_understood) {
  RunRow row = complete_row();
  row.pp = row.vp = 1;
  row.recompute = "selective: fraction 0.25 of whole blocks";
  RowScenario read = scenario_of_row(row, parts());
  EXPECT_EQ(read.scenario.training.recompute, Recompute::kFull);
  EXPECT_DOUBLE_EQ(read.scenario.training.recompute_fraction, 0.25);
  row.recompute = "selective: saves q,k,v only (save_qkv_proj)";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.training.recompute, Recompute::kKeepQkv);
  row.fsdp_zero = "FSDP (ZeRO-2-like: optimizer+grads sharded, params not resharded)";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.shard, Sharding::kFsdpKeep);
  row.fsdp_zero = "FULL_SHARD (FSDP, mixed_precision DEFAULT)";
  row.precision = "fp8-rowwise";
  read = scenario_of_row(row, parts());
  EXPECT_EQ(read.scenario.plan.shard, Sharding::kZero3);
  EXPECT_EQ(read.scenario.training.precision, DataType::kFp8);
}

TEST(RowScenario, notes_of_what_does_not_overlap_are_understood) {
  RunRow row = complete_row();
  const double overlapped = step_time(row);
  row.overlap_notes = "no TP userbuffers overlap; PP p2p overlap";
  const RowScenario no_tp = scenario_of_row(row, parts());
  EXPECT_EQ(no_tp.scenario.software.tp_overlap, TpOverlap::kNone);
  EXPECT_TRUE(no_tp.scenario.software.dp_overlap);
  row.overlap_notes = "Megatron script without overlap flags";
  EXPECT_FALSE(scenario_of_row(row, parts()).scenario.software.dp_overlap);
  EXPECT_GT(step_time(row), overlapped);
  row.overlap_notes = "TP comm overlap (userbuffers), DP grad-reduce/param-gather overlap";
  EXPECT_EQ(step_time(row), overlapped);
}

// torch.compile is off unless asked; asynchronous TP and float8 are used with it alone.
TEST(RowScenario, notes_of_what_was_compiled_are_understood) {
  RunRow row = complete_row();
  row.software = "torch-fsdp2";
  row.pp = row.vp = 1;
  const auto stack = [&](const std::string& notes) {
    row.overlap_notes = notes;
    return scenario_of_row(row, parts());
  };
  for (const char* eager : {"", "none", "FSDP2", "default config (no compile)", "torch.compile=False; FSDP2 overlap"}) {
    const RowScenario read = stack(eager);
    EXPECT_EQ(read.scenario.software.name, "torch-fsdp2-eager") << eager;
    EXPECT_THAT(read.assumed, Contains("software = torch-fsdp2-eager")) << eager;
  }
  for (const char* compiled : {"torch.compile; vanilla TP", "float8", "torch.compile=True; FSDP2 overlap"}) {
    const RowScenario read = stack(compiled);
    EXPECT_EQ(read.scenario.software.name, "torch-fsdp2") << compiled;
    EXPECT_EQ(read.scenario.software.tp_overlap, TpOverlap::kNone) << compiled;
  }
  const SoftwareStack async = stack("torch.compile; async TP").scenario.software;
  EXPECT_EQ(async.tp_overlap, TpOverlap::kChunked);
  EXPECT_EQ(async.tp_overlap_chunks, row.tp);
  EXPECT_TRUE(async.tp_backward_overlap);
  const RowScenario set = scenario_of_row(row, RowParts({"software.tp_overlap=NONE"}));
  EXPECT_EQ(set.scenario.software.tp_overlap, TpOverlap::kNone) << "what is set wins";
  row.precision = "fp8";
  EXPECT_TRUE(stack("torch.compile").scenario.software.tp_fp8_gathers);
  row.precision = "fp8-rowwise";
  EXPECT_FALSE(stack("torch.compile").scenario.software.tp_fp8_gathers);
}

TEST(RowScenario, a_blank_vp_is_as_many_as_fit_unless_the_schedule_is_plain_1f1b) {
  RunRow row = complete_row();
  row.vp = std::nullopt;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.virtual_stages, 8);
  row.pp_schedule = "interleaved-1F1B";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.virtual_stages, 8);
  row.pp_schedule = "1F1B";
  const RowScenario read = scenario_of_row(row, parts());
  EXPECT_EQ(read.scenario.plan.virtual_stages, 1);
  EXPECT_EQ(read.scenario.training.schedule, "1f1b");
  EXPECT_THAT(read.assumed, testing::Not(Contains(HasSubstr("vp"))));
}

TEST(RowScenario, lower_power_slower_memory_and_a_slower_network_take_longer) {
  const double usual = step_time(complete_row());
  RunRow row = complete_row();
  row.gpu_power_watts = 500;
  EXPECT_GT(step_time(row), usual);
  row = complete_row();
  row.hbm_gigabytes_per_second = 2400;
  EXPECT_GT(step_time(row), usual);
  row = complete_row();
  row.allgather_gigabytes_per_second = row.reducescatter_gigabytes_per_second = 40;
  EXPECT_GT(step_time(row), usual);
  row = complete_row();
  row.gpu = "H800";
  EXPECT_GT(step_time(row), usual);
}

// A job of a published grid: 16 layers over one or two hosts, its rings measured in it.
RunRow grid_row(int64_t gpus, double allgather) {
  RunRow row = complete_row();
  row.software = "nanotron";
  row.layers = 16;
  row.hidden = 2048;
  row.ffn = 8192;
  row.heads = row.kv_heads = 32;
  row.head_dim = 64;
  row.vocab = 131072;
  row.seq_len = 4096;
  row.num_gpus = row.tp = gpus;
  row.pp = row.vp = 1;
  row.micro_batch = 16;
  row.global_batch = 64;
  row.fsdp_zero = "ZeRO-0";
  row.attention_kernel = "fa2";
  row.allgather_gigabytes_per_second = row.reducescatter_gigabytes_per_second = allgather;
  return row;
}

// 263 GB/s of lists of tensors in a host is NCCL as everywhere, and a copy.
TEST(RowScenario, figures_of_lists_have_a_copy_in_them) {
  RunRow unmeasured = grid_row(8, 263);
  unmeasured.allgather_gigabytes_per_second = unmeasured.reducescatter_gigabytes_per_second = std::nullopt;
  const double usual = step_time(unmeasured);
  EXPECT_NEAR(step_time(grid_row(8, 263)), usual, 0.02 * usual);
  EXPECT_GT(step_time(grid_row(8, 200)), 1.03 * usual);
}

// Three for the loss of each of four micro-batches, and one a norm at the end of the step.
TEST(RowScenario, small_all_reduces_over_hosts_of_a_slow_fabric_take_milliseconds) {
  const auto seconds = [&](const RunRow& row, const std::vector<std::string>& sets) {
    return simulate_step(scenario_of_row(row, parts(), sets).scenario, {}).result.step_time.seconds();
  };
  const std::vector<std::string> none = {"loss_reductions=0", "norm_reductions_per_layer=0"};
  const RunRow row = grid_row(16, 224);
  const double more = seconds(row, {}) - seconds(row, none);
  EXPECT_NEAR(more, (3 * 4 + 2 * 16 + 1) * 3.5e-3, 0.1 * more);
  const RunRow in_host = grid_row(8, 263);
  EXPECT_LT(seconds(in_host, {}) - seconds(in_host, none), 5e-3);
}

TEST(RowScenario, sets_change_every_software_stack_and_nothing_else) {
  const RowParts slow({"software.clock_factor=0.5"});
  const RowScenario read = scenario_of_row(complete_row(), slow);
  EXPECT_DOUBLE_EQ(read.scenario.software.clock_factor, 0.5);
  EXPECT_THROW(RowParts({"parallel.tp=4"}), SpecError);
  EXPECT_THROW(RowParts({"software.clock=0.5"}), SpecError);
}

}  // namespace
}  // namespace herdsim

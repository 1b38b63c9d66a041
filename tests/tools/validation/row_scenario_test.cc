#include "tools/validation/row_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "sim/base/error.h"
#include "tests/tools/validation/complete_row.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

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

TEST(RowScenario, sequence_parallelism_is_younger_than_megatron_of_2021) {
  RunRow row = complete_row();
  row.sp = std::nullopt;
  EXPECT_TRUE(scenario_of_row(row, parts()).scenario.plan.sequence_parallel);
  row.software = "megatron-2021";
  EXPECT_FALSE(scenario_of_row(row, parts()).scenario.plan.sequence_parallel);
  row.experts = 8;
  EXPECT_EQ(scenario_of_row(row, parts()).skipped_because, "") << "experts need it";
}

TEST(RowScenario, megatron_and_deepspeed_number_replicas_before_stages) {
  using Order = std::array<Axis, kAxes>;
  RunRow row = complete_row();
  for (const char* software : {"megatron-2021", "megatron-te", "megatron-deepspeed"}) {
    row.software = software;
    EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.order,
              (Order{Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp}));
  }
  row.software = "meta-llama3";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.order,
            (Order{Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp}));
}

TEST(RowScenario, micro_batches_of_megatron_of_2021_are_those_its_authors_found_best) {
  RunRow row = complete_row();
  row.micro_batch = std::nullopt;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.micro_batch, 1);
  row.software = "megatron-2021";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.micro_batch, 2);
  row.global_batch = 60;  // 15 of each of four replicas
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.micro_batch, 1);
  row.pp = row.vp = 1;
  row.global_batch = 64;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.micro_batch, 4);
}

TEST(RowScenario, deepspeeds_pipeline_is_not_interleaved) {
  RunRow row = complete_row();
  row.vp = std::nullopt;
  row.sp = std::nullopt;
  row.software = "megatron-deepspeed";
  const Scenario read = scenario_of_row(row, parts()).scenario;
  EXPECT_EQ(read.training.schedule, "1f1b");
  EXPECT_FALSE(read.plan.sequence_parallel);
  EXPECT_EQ(read.software.gradient_accumulation_type, DataType::kFp16);
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
  row.recompute = "selective (save_dot_with_context_except_mlp)";
  const Training mlp = scenario_of_row(row, parts()).scenario.training;
  EXPECT_TRUE(mlp.selects(RecomputeModule::kMlp) && mlp.selects(RecomputeModule::kNorms));
  EXPECT_FALSE(mlp.selects(RecomputeModule::kCoreAttention));
  row.recompute = "selective: core attention, norms and activation functions";
  const Training products = scenario_of_row(row, parts()).scenario.training;
  EXPECT_TRUE(products.selects(RecomputeModule::kCoreAttention) &&
              products.selects(RecomputeModule::kActivation));
  EXPECT_FALSE(products.selects(RecomputeModule::kMlp));
  row.fsdp_zero = "FSDP (ZeRO-2-like: optimizer+grads sharded, params not resharded)";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.shard, Sharding::kFsdpKeep);
  row.fsdp_zero = "HSDP: FSDP(8)";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.dp_shard, 8);
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

// Megatron-LM passes keys and values round a ring; PyTorch and Llama 3 gather them.
TEST(RowScenario, context_ranks_exchange_keys_and_values_as_their_stack_does) {
  RunRow row = complete_row();
  row.cp = 2;
  row.dp.reset();
  for (const auto& [software, context] : {std::pair("megatron-te", ContextParallel::kRing),
                                          std::pair("megatron-2023", ContextParallel::kRing),
                                          std::pair("torch-fsdp2", ContextParallel::kRing),
                                          std::pair("meta-llama3", ContextParallel::kAllGather)}) {
    row.software = software;
    EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.context, context) << software;
  }
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
  EXPECT_EQ(stack("torch.compile").scenario.software.name, "torch-fsdp2-rowwise");
  EXPECT_FALSE(stack("torch.compile").scenario.software.tp_fp8_gathers);
  EXPECT_EQ(stack("none").scenario.software.name, "torch-fsdp2-eager");
  row.software = "megatron-te";
  EXPECT_EQ(stack("").scenario.software.name, "megatron-te") << "has one record for all";
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

TEST(RowScenario, other_schedules_are_known_by_name) {
  RunRow row = complete_row();
  row.vp = std::nullopt;
  const auto schedule = [&](const std::string& word) {
    row.pp_schedule = word;
    return scenario_of_row(row, parts()).scenario.training.schedule;
  };
  EXPECT_EQ(schedule("GPipe"), "gpipe");
  EXPECT_EQ(schedule("ZB-H1"), "zb-h1");
  EXPECT_EQ(schedule("ZB-V"), "zb-v");
  EXPECT_EQ(schedule("DualPipe"), "dualpipe");
  EXPECT_EQ(schedule("n/a"), "interleaved-1f1b");
  row.pp = 3;
  row.num_gpus = row.global_batch = 48;
  row.layers = 30;
  EXPECT_EQ(schedule("DualPipe"), "interleaved-1f1b") << "an odd number of stages has no pairs";
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

// Eager kernels took as long on an H100 with memory of 2.4 TB/s; the rate of others is the memory's.
TEST(RowScenario, slower_memory_slows_kernels_that_keep_it_busy) {
  const auto rates = [](double gigabytes) {
    RunRow row = complete_row();
    if (gigabytes > 0) row.hbm_gigabytes_per_second = gigabytes;
    const DeviceProfile profile = scenario_of_row(row, parts()).scenario.profile;
    std::vector<double> out;
    for (const StreamCurve& curve : profile.stream) out.push_back(curve.bytes_per_second.points().back().y);
    return out;
  };
  const auto framework = static_cast<size_t>(StreamClass::kFramework);
  const auto fused = static_cast<size_t>(StreamClass::kFused);
  const std::vector<double> usual = rates(0);
  EXPECT_DOUBLE_EQ(rates(2400)[framework], usual[framework]);
  EXPECT_NEAR(rates(2400)[fused], 2400.0 / 3350 * usual[fused], 0.01 * usual[fused]);
  EXPECT_NEAR(rates(1000)[framework], rates(1000)[fused], 1e-6 * usual[fused]) << "no faster than fused ones";
  EXPECT_GT(rates(4800)[framework], usual[framework]);
}

TEST(RowScenario, the_network_between_nodes_is_as_stated) {
  const auto nic = [](const std::string& words) {
    RunRow row = complete_row();
    row.interconnect = words;
    return scenario_of_row(row, parts()).scenario.cluster.nic.gigabytes_per_second() * 8;
  };
  for (const char* said_nothing : {"", "DGX H100 node; scale-out not stated", "NVLink 400 GB/s", "H800 NVLink, PCIe 5.0 x16"}) {
    EXPECT_DOUBLE_EQ(nic(said_nothing), 400) << said_nothing;
  }
  EXPECT_DOUBLE_EQ(nic("Jean Zay: 4x100 Gb/s Omni-Path per node (memory)"), 50);
  EXPECT_DOUBLE_EQ(nic("H800 nodes: 8 GPUs NVLink, 8x100 Gbps NICs per node, PCIe 5.0 x16"), 100);
  EXPECT_DOUBLE_EQ(nic("8x ConnectX-7 IB NDR 400Gb/s per node; NVLink4 900GB/s"), 400);
  EXPECT_DOUBLE_EQ(nic("1600 Gbps node-node RoCE"), 200);
  EXPECT_DOUBLE_EQ(nic("8x H100 96GB, NVLink; 200 Gb/s RDMA per GPU"), 200);
  EXPECT_DOUBLE_EQ(nic("InfiniBand 200 Gb/s; H800 NVLink 400 GB/s"), 200);
}

TEST(RowScenario, nvlink_of_a_rack_joins_its_nodes) {
  RunRow row = complete_row();
  row.gpus_per_node = 4;
  row.gpu = "GB200";
  const RowScenario rack = scenario_of_row(row, parts());
  EXPECT_EQ(rack.scenario.cluster.gpus_per_host, 64);
  EXPECT_THAT(rack.assumed, Not(Contains(HasSubstr("clock over the profile's"))));
  row.gpu = "GB300";
  const RowScenario next = scenario_of_row(row, parts());
  EXPECT_GT(next.scenario.software.clock_factor, 1);
  EXPECT_THAT(next.assumed, Contains(HasSubstr("clock over the profile's")));
  row.num_gpus = 16;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.cluster.gpus_per_host, 16);
  row.num_gpus = 96;
  row.tp = row.pp = 1;
  row.vp = 1;
  row.global_batch = 96;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.cluster.gpus_per_host, 48);
  row.gpu = "H200";
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.cluster.gpus_per_host, 4);
}

TEST(RowScenario, stages_have_the_layers_that_are_stated) {
  RunRow row = complete_row();
  row.vp = std::nullopt;
  row.layers_per_stage = "8, 8, 9, 7";
  const ParallelPlan plan = scenario_of_row(row, parts()).scenario.plan;
  EXPECT_EQ(plan.virtual_stages, 1);
  EXPECT_THAT(plan.layers_per_chunk, testing::ElementsAre(8, 8, 9, 7));
  row.layers_per_stage = "8 8 9 9";
  EXPECT_THAT(scenario_of_row(row, parts()).skipped_because, HasSubstr("sum to 34"));
}

// A board of four GPUs has as many links between each pair and no switch.
TEST(RowScenario, groups_of_a_board_without_switch_have_the_links_between_them) {
  RunRow row = complete_row();
  row.gpu = "H200";
  row.gpus_per_node = 4;
  row.pp = row.vp = 1;
  const auto nvlink = [&](int64_t gpus, int64_t tp) {
    row.num_gpus = gpus;
    row.tp = tp;
    return scenario_of_row(row, parts()).scenario.cluster.nvlink.gigabytes_per_second();
  };
  EXPECT_DOUBLE_EQ(nvlink(8, 4), 450);
  EXPECT_DOUBLE_EQ(nvlink(8, 2), 150);
  EXPECT_DOUBLE_EQ(nvlink(8, 1), 450);
  EXPECT_DOUBLE_EQ(nvlink(2, 1), 150);
  row.gpus_per_node = 8;
  EXPECT_DOUBLE_EQ(nvlink(8, 2), 450);
}

// What torchtitan does: parameters stay gathered, gradients are reduced once; torchtitan makes as
// many micro-batches as stages.
TEST(RowScenario, fsdp2_under_a_pipeline_gathers_once_a_step) {
  RunRow row = complete_row();
  row.software = "torch-fsdp2";
  row.fsdp_zero = "FSDP2(4)";
  row.vp = row.micro_batch = std::nullopt;
  row.global_batch = 128;
  row.pp_schedule = "1F1B";
  const Scenario plain = scenario_of_row(row, parts()).scenario;
  EXPECT_EQ(plain.plan.shard, Sharding::kFsdpKeep);
  EXPECT_EQ(plain.plan.micro_batch, 8);
  row.pp_schedule = "Interleaved 1F1B";
  const Scenario interleaved = scenario_of_row(row, parts()).scenario;
  EXPECT_EQ(interleaved.plan.virtual_stages, 2);
  EXPECT_EQ(interleaved.plan.micro_batch, 8);
  row.pp = 1;
  EXPECT_EQ(scenario_of_row(row, parts()).scenario.plan.shard, Sharding::kZero3);
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

// 1 GiB over 16 ranks, 67 MB a step: at 230 GB/s in 290 us, at 160 in 420.
TEST(RowScenario, rings_that_take_too_long_for_any_wire_show_hosts_that_stall) {
  const auto tensor_row = [](int64_t tp, int64_t micro_batch, double all_gather) {
    RunRow row = grid_row(16, all_gather);
    row.tp = tp;
    row.micro_batch = micro_batch;
    return row;
  };
  const auto stalls = HasSubstr("host_stall_probability");
  EXPECT_THAT(scenario_of_row(tensor_row(8, 1, 160), parts()).assumed, Contains(stalls));
  EXPECT_THAT(scenario_of_row(tensor_row(8, 1, 230), parts()).assumed, Not(Contains(stalls)));
  const RowParts none({"software.host_stall_probability=0"});
  EXPECT_THAT(scenario_of_row(tensor_row(8, 1, 160), none).assumed, Not(Contains(stalls)));
  // A slow wire is slow by itself: 670 us a step at 100 GB/s, and eight NICs of 20 GB/s carry 110.
  RunRow slow = tensor_row(8, 1, 100);
  EXPECT_THAT(scenario_of_row(slow, parts()).assumed, Contains(stalls));
  slow.interconnect = "160 Gb/s RDMA per GPU";
  EXPECT_THAT(scenario_of_row(slow, parts()).assumed, Not(Contains(stalls)));
  const auto slower = [&](int64_t tp, int64_t micro_batch) {
    return step_time(tensor_row(tp, micro_batch, 160)) /
           step_time(tensor_row(tp, micro_batch, 230));
  };
  // More ranks wait for each other, and long kernels hide what hosts lose.
  EXPECT_GT(slower(2, 1), 1.2);
  EXPECT_GT(slower(8, 1), 1.5 * slower(2, 1));
  EXPECT_LT(slower(8, 32), 1.1);
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

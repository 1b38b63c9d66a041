// Every field of the language arrives in the value that it stands for.
#include "tools/scenario/load_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace herdsim {
namespace {

using ::testing::ElementsAre;

TEST(LoadScenario, an_empty_part_is_a_default_struct) {
  const std::string text = R"(
      model { layers: 4 hidden: 512 ffn: 1024 heads: 8 vocab: 1000 }
      cluster { topology: "clos3" gpus: 24576 } profile { base: "h100-sxm5-80gb" }
      gpus: 8 training { sequence_length: 512 global_batch: 8 })";
  const Scenario s = load_scenario_text(text, "mine.textproto");
  const SoftwareStack software;
  const ClusterSpec cluster;
  EXPECT_EQ(s.name, "mine");
  EXPECT_EQ(s.model.kv_heads, 8);
  EXPECT_EQ(s.model.head_dim, 64);
  EXPECT_EQ(s.model.gated_mlp, ModelArchitecture{}.gated_mlp);
  EXPECT_EQ(s.plan.dp, 8);
  EXPECT_EQ(s.plan.shard, ParallelPlan{}.shard);
  EXPECT_EQ(s.seed, Scenario{}.seed);
  EXPECT_EQ(s.cluster.gpus_per_pod, cluster.gpus_per_pod);
  EXPECT_EQ(s.cluster.nic_efficiency, cluster.nic_efficiency);
  EXPECT_EQ(s.cluster.nvlink, cluster.nvlink);
  EXPECT_EQ(s.cluster.pcie, cluster.pcie);
  EXPECT_EQ(s.cluster.routing, cluster.routing);
  EXPECT_EQ(s.software.attention_kernel, software.attention_kernel);
  EXPECT_EQ(s.software.backward.hidden_bytes, software.backward.hidden_bytes);
  EXPECT_EQ(s.software.optimizer_bytes, software.optimizer_bytes);
  EXPECT_EQ(s.software.tp_backward_overlap, software.tp_backward_overlap);
  EXPECT_EQ(s.software.clock_factor, software.clock_factor);
}

// Every field of the stack gets a value that is not its default: one that the conversion forgot
// would keep it.
TEST(LoadScenario, every_field_of_a_software_stack_arrives) {
  const SoftwareStack s =
      load_software("megatron-te", {"name=mine",
                                    "attention_kernel=fa2",
                                    "forward={hidden_bytes: 1 ffn_bytes: 2 stream: FRAMEWORK}",
                                    "backward={hidden_bytes: 3 ffn_bytes: 4 stream: OPTIMIZER}",
                                    "logit_bytes=5",
                                    "logit_stream=FRAMEWORK",
                                    "gradient_accumulation_bytes=7",
                                    "gradient_accumulation_type=FP16",
                                    "gradient_reduce_type=FP8",
                                    "parameter_gather_type=FP32",
                                    "optimizer_bytes=9",
                                    "tp_overlap=CHUNKED",
                                    "tp_overlap_chunks=11",
                                    "tp_regather_in_backward=false",
                                    "tp_backward_overlap=false",
                                    "tp_own_tokens_first=true",
                                    "measures_lists=true",
                                    "sequence_parallel=false",
                                    "loss_reductions=21",
                                    "norm_reductions_per_layer=22",
                                    "host_microseconds_per_message=23",
                                    "host_microseconds_per_head=19",
                                    "host_microseconds_per_sharded_layer=20",
                                    "tp_fp8_transfers=true",
                                    "tp_fp8_gathers=true",
                                    "tp_gathers_apart=true",
                                    "tp_reduces_apart=true",
                                    "tp_gathers_logits=true",
                                    "tp_replicates_table=true",
                                    "dp_reduces_once=true",
                                    "ring_repeats_kv=true",
                                    "ring_merge_bytes=30",
                                    "ring_gradient_bytes=31",
                                    "fp8_input_cast_bytes=32",
                                    "fp8_input_turn_bytes=33",
                                    "fp8_gradient_cast_bytes=34",
                                    "fp8_gradient_turn_bytes=35",
                                    "fp8_weight_cast_bytes=36",
                                    "fp8_weight_turn_bytes=37",
                                    "fp8_product_slowdown=38",
                                    "gradient_bucket_bytes=1.5",
                                    "parameter_gather_flat=true",
                                    "p2p_async=false",
                                    "dp_overlap=false",
                                    "activation_hidden_bytes=12",
                                    "activation_ffn_bytes=13",
                                    "host_microseconds_per_layer_forward=14",
                                    "host_microseconds_per_layer_backward=15",
                                    "launch_blocking=true",
                                    "host_milliseconds_per_step=16",
                                    "host_stall_probability=0.24",
                                    "host_stall_microseconds=25",
                                    "head_weight_gradients_deferred=19",
                                    "clamp_forward_ffn_bytes=20",
                                    "clamp_backward_ffn_bytes=21",
                                    "expert_bias_forward_bytes=22",
                                    "expert_bias_backward_bytes=23",
                                    "gpu_speed_sigma=0.17",
                                    "clock_factor=0.18"});
  EXPECT_EQ(s.name, "mine");
  EXPECT_EQ(s.attention_kernel, "fa2");
  EXPECT_THAT((std::vector<double>{
                  s.forward.hidden_bytes, s.forward.ffn_bytes, s.backward.hidden_bytes,
                  s.backward.ffn_bytes, s.logit_bytes, s.gradient_accumulation_bytes,
                  s.optimizer_bytes, s.activation_hidden_bytes, s.activation_ffn_bytes,
                  s.host_microseconds_per_layer_forward, s.host_microseconds_per_layer_backward,
                  s.host_milliseconds_per_step, s.gpu_speed_sigma, s.clock_factor,
                  s.host_microseconds_per_head, s.host_microseconds_per_sharded_layer,
                  s.host_microseconds_per_message}),
              ElementsAre(1, 2, 3, 4, 5, 7, 9, 12, 13, 14, 15, 16, 0.17, 0.18, 19, 20, 23));
  EXPECT_EQ(s.host_stalls, (HostStalls{.probability = 0.24, .microseconds = 25}));
  EXPECT_EQ(s.loss_reductions, 21);
  EXPECT_EQ(s.norm_reductions_per_layer, 22);
  EXPECT_EQ(s.head_weight_gradients_deferred, 19);
  EXPECT_THAT((std::vector<double>{s.clamp_forward_ffn_bytes, s.clamp_backward_ffn_bytes,
                                   s.expert_bias_forward_bytes, s.expert_bias_backward_bytes}),
              ElementsAre(20, 21, 22, 23));
  EXPECT_EQ(s.forward.stream, StreamClass::kFramework);
  EXPECT_EQ(s.backward.stream, StreamClass::kOptimizer);
  EXPECT_EQ(s.logit_stream, StreamClass::kFramework);
  EXPECT_EQ(s.gradient_accumulation_type, DataType::kFp16);
  EXPECT_EQ(s.gradient_reduce_type, DataType::kFp8);
  EXPECT_EQ(s.parameter_gather_type, DataType::kFp32);
  EXPECT_EQ(s.tp_overlap, TpOverlap::kChunked);
  EXPECT_EQ(s.tp_overlap_chunks, 11);
  EXPECT_TRUE(s.tp_fp8_transfers && s.tp_own_tokens_first && s.measures_lists);
  EXPECT_TRUE(s.tp_fp8_gathers && s.parameter_gather_flat && s.launch_blocking);
  EXPECT_TRUE(s.tp_gathers_apart && s.tp_reduces_apart && s.tp_gathers_logits &&
              s.tp_replicates_table && s.dp_reduces_once && s.ring_repeats_kv);
  EXPECT_THAT((std::vector<double>{s.ring_merge_bytes, s.ring_gradient_bytes,
                                   s.fp8_input_cast_bytes, s.fp8_input_turn_bytes,
                                   s.fp8_gradient_cast_bytes, s.fp8_gradient_turn_bytes,
                                   s.fp8_weight_cast_bytes, s.fp8_weight_turn_bytes,
                                   s.fp8_product_slowdown}),
              ElementsAre(30, 31, 32, 33, 34, 35, 36, 37, 38));
  EXPECT_DOUBLE_EQ(s.gradient_bucket_bytes, 1.5);
  EXPECT_FALSE(s.tp_regather_in_backward || s.tp_backward_overlap || s.p2p_async || s.dp_overlap ||
               s.sequence_parallel);
}

TEST(LoadScenario, every_field_of_a_cluster_arrives) {
  const ClusterSpec c =
      load_cluster("meta-roce-24k", {"name=mine",
                                     "topology=rail-optimized",
                                     "gpus=4096",
                                     "gpus_per_host=4",
                                     "gpus_per_tor=8",
                                     "gpus_per_pod=64",
                                     "tor_uplinks=5",
                                     "pod_oversubscription=1.5",
                                     "nvlink_gigabytes_per_second=900",
                                     "nic_gigabits_per_second=800",
                                     "nic_efficiency=0.9",
                                     "pcie_gigabytes_per_second=128",
                                     "placement=RANDOM_HOSTS",
                                     "queue_pairs=3",
                                     "routing=ecmp",
                                     "detour_share=0.125",
                                     "nccl_version=2.27",
                                     "buffers=shallow",
                                     "send_window_kib=3",
                                     "collective_window_kib=6",
                                     "tor_round_trip_us=7",
                                     "pod_round_trip_us=8",
                                     "core_round_trip_us=9",
                                     "storage_network={path: TRAINING servers: 10 "
                                     "server_gigabits_per_second: 11 host_gigabits_per_second: 12 "
                                     "hosts_per_switch: 13 oversubscription: 14}",
                                     "degraded={gpu: 7 compute_factor: 0.5}",
                                     "degraded={gpu: 8 nic_factor: 0.25}"});
  EXPECT_EQ(c.name, "mine");
  EXPECT_EQ(c.topology, "rail-optimized");
  EXPECT_THAT((std::vector<int64_t>{c.gpus, c.gpus_per_host, c.gpus_per_tor, c.gpus_per_pod,
                                    c.tor_uplinks, c.queue_pairs}),
              ElementsAre(4096, 4, 8, 64, 5, 3));
  EXPECT_EQ(c.pod_oversubscription, 1.5);
  EXPECT_EQ(c.nvlink, gigabytes_per_second(900));
  EXPECT_EQ(c.nic, gigabits_per_second(800));
  EXPECT_EQ(c.nic_efficiency, 0.9);
  EXPECT_EQ(c.pcie, gigabytes_per_second(128));
  EXPECT_EQ(c.placement, PlacementKind::kRandomHosts);
  EXPECT_EQ(c.routing, "ecmp");
  EXPECT_EQ(c.detour_share, 0.125);
  EXPECT_EQ(c.nccl_version, "2.27");
  EXPECT_EQ(c.buffers, "shallow");
  EXPECT_EQ(c.send_window, kibibytes(3));
  EXPECT_EQ(c.collective_window, kibibytes(6));
  EXPECT_THAT((std::vector<double>{c.tor_round_trip_us, c.pod_round_trip_us, c.core_round_trip_us}),
              ElementsAre(7, 8, 9));
  EXPECT_EQ(c.storage.path, StorageNetwork::Path::kTraining);
  EXPECT_EQ(c.storage.servers, 10);
  EXPECT_EQ(c.storage.server, gigabits_per_second(11));
  EXPECT_EQ(c.storage.host, gigabits_per_second(12));
  EXPECT_EQ(c.storage.hosts_per_switch, 13);
  EXPECT_EQ(c.storage.oversubscription, 14);
  ASSERT_EQ(c.degraded.size(), 2U);
  EXPECT_EQ(c.degraded[0].gpu, 7);
  EXPECT_EQ(c.degraded[0].compute_factor, 0.5);
  EXPECT_EQ(c.degraded[0].nic_factor, 1);
  EXPECT_EQ(c.degraded[1].compute_factor, 1);
  EXPECT_EQ(c.degraded[1].nic_factor, 0.25);
}

// A plan written out is the row that it spells.
TEST(LoadScenario, collectives_and_traffic_arrive) {
  const Scenario s =
      load_scenario("llama3-405b-16384",
                    {"collectives={kind: ALL_REDUCE communicator: DP algorithm: \"hierarchical\"}",
                     "collectives={kind: ALL_REDUCE phases {kind: REDUCE_SCATTER group: NODE} "
                     "phases {kind: ALL_REDUCE group: RAIL} "
                     "phases {kind: ALL_GATHER group: NODE}}",
                     "collectives={kind: ALL_GATHER communicator: TP phases {kind: ALL_GATHER "
                     "algorithm: \"ring\" channels: 3 "
                     "efficiency: 0.5}}",
                     "other_traffic={saving: true save_begins_s: 2 save_left: 0.25 tor_uplinks: "
                     "0.1 pod_uplinks: 0.2}"});
  ASSERT_EQ(s.collectives.size(), 3U);
  EXPECT_EQ(s.collectives[0].phases, s.collectives[1].phases);
  EXPECT_EQ(s.collectives[0].phases.size(), 3U);
  EXPECT_TRUE(s.collectives[0].communicators.test(static_cast<size_t>(Communicator::kGradient)));
  EXPECT_FALSE(s.collectives[0].communicators.test(static_cast<size_t>(Communicator::kTensor)));
  EXPECT_TRUE(s.collectives[1].communicators.all());
  const CollectivePhase ring{.kind = CollectiveKind::kAllGather,
                             .part = GroupPart::kAll,
                             .algorithm = Algorithm::kRing,
                             .channels = 3,
                             .efficiency = 0.5};
  EXPECT_EQ(s.collectives[2].phases, std::vector{ring});
  EXPECT_EQ(s.collectives[2].communicators.count(), 1U);
  EXPECT_TRUE(s.other_traffic.saving);
  EXPECT_FALSE(s.other_traffic.loading);
  EXPECT_EQ(s.other_traffic.save_begins, seconds(2));
  EXPECT_EQ(s.other_traffic.save_left, 0.25);
  EXPECT_EQ(s.other_traffic.tor_uplinks, 0.1);
  EXPECT_EQ(s.other_traffic.pod_uplinks, 0.2);
}

}  // namespace
}  // namespace herdsim

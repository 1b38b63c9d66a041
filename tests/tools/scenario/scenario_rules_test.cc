// One row a rule: a change to a scenario that is right, and what must be said about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/scenario/scenario_text.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

struct Rule {
  std::vector<std::string> sets;
  std::string field;
  std::string says;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> rows = {
      // Single fields.
      {{"model.layers=0"},
       "model.layers",
       "0 is out of range; allowed: a whole number from 1 up to 100000"},
      {{"model.layers=100001"}, "model.layers", "out of range"},
      {{"model.hidden=10000001"}, "model.hidden", "out of range"},
      {{"model.ffn=-1"}, "model.ffn", "out of range"},
      {{"model.heads=0"}, "model.heads", "out of range"},
      {{"model.vocab=0"}, "model.vocab", "out of range"},
      {{"training.sequence_length=100000001"}, "training.sequence_length", "out of range"},
      {{"training.global_batch=0"}, "training.global_batch", "out of range"},
      {{"training.document_mask_fraction=0"},
       "training.document_mask_fraction",
       "a number above 0 up to 1"},
      {{"gpus=4194305"}, "gpus", "out of range"},
      {{"parallel.tp=0"}, "parallel.tp", "out of range"},
      {{"parallel.micro_batch=0"}, "parallel.micro_batch", "out of range"},
      {{"cluster.nic_efficiency=0"}, "cluster.nic_efficiency", "out of range"},
      {{"cluster.nic_efficiency=1.01"}, "cluster.nic_efficiency", "out of range"},
      {{"cluster.pod_oversubscription=nan"}, "cluster.pod_oversubscription", "nan is out of range"},
      {{"checkpoint.interval_s=inf"}, "checkpoint.interval_s", "inf is out of range"},
      {{"software.gpu_speed_sigma=-0.1"}, "software.gpu_speed_sigma", "out of range"},
      {{"reliability.rate_scale=-1"}, "reliability.rate_scale", "out of range"},
      {{"run.days=-1"}, "run.days", "out of range"},
      {{"cluster.degraded={gpu: 1 compute_factor: 0}"},
       "cluster.degraded.0.compute_factor",
       "above 0 up to 1"},
      {{"cluster.degraded={gpu: 1 nic_factor: 1.5}"},
       "cluster.degraded.0.nic_factor",
       "from 0 up to 1"},
      {{"cluster.degraded={nic_factor: 0.5}"}, "cluster.degraded.0", "names no part"},
      {{"cluster.degraded={tor: 99999 down: true}"}, "cluster.degraded.0.tor", "there is no tor"},
      {{"cluster.placement=RANK_MAP"}, "cluster.rank_map", "is missing"},
      {{"cluster.rank_map=map.txt"}, "cluster.rank_map", "placement is RANK_MAP"},
      {{"cluster.placement=RANK_MAP", "cluster.rank_map=no/such/file"},
       "cluster.rank_map",
       "cannot be read"},
      {{"cluster.unavailable_fraction=0.9"}, "gpus", "on available hosts"},
      {{"cluster.unavailable_hosts=[999999]"}, "cluster.unavailable_hosts.0", "no host"},
      // Names.
      {{"model.base=llama3-40b"}, "model.base", "did you mean \"llama3-405b\"?"},
      {{"cluster.base=meta-roce-24"}, "cluster.base", "did you mean \"meta-roce-24k\"?"},
      {{"software.base=megatron-t"}, "software.base", "did you mean \"megatron-te\"?"},
      {{"profile.base=h100-sxm5-80g"}, "profile.base", "did you mean \"h100-sxm5-80gb\"?"},
      {{"cluster.topology=clos4"}, "cluster.topology", "did you mean \"clos3\"?"},
      {{"training.schedule=interleaved"}, "training.schedule", "interleaved-1f1b"},
      {{"profile.base=a100-sxm4-80gb", "software.attention_kernel=fa2", "training.precision=FP8"},
       "training.precision",
       "profile a100-sxm4-80gb has no peak for FP8; allowed: BF16, FP16, FP32"},
      {{"profile.clock.training_factor=1e300"},
       "profile.clock.training_factor",
       "out of range; allowed: above 0 up to 2"},
      {{"cluster.switch_ports=1"}, "cluster.switch_ports", "a switch of one port joins nothing"},
      {{"software.attention_kernel=cudnn8"},
       "software.attention_kernel",
       "did you mean \"cudnn9\"?"},
      {{"cluster.routing=ecpm"}, "cluster.routing", "did you mean \"ecmp\"?"},
      {{"reliability.failure_log=no/such/file"}, "reliability.failure_log", "cannot be opened"},
      {{"reliability.base=llama3-54-day"}, "reliability.base", "did you mean \"llama3-54-days\"?"},
      {{"checkpoint.policy=asink"}, "checkpoint.policy", "did you mean \"async\"?"},
      {{"recovery.policy=restart-with-spare"},
       "recovery.policy",
       "did you mean \"restart-with-spares\"?"},
      // Storage.
      {{"cluster.storage_network.servers=0", "other_traffic.saving=true"},
       "other_traffic.saving",
       "no storage servers"},
      {{"other_traffic.loading=true"}, "other_traffic.loading", "nothing to read"},
      {{"other_traffic.loading=true", "checkpoint.storage.data_loading_gigabytes_per_second=1e7"},
       "checkpoint.storage.data_loading_gigabytes_per_second",
       "beside a step"},
      {{"other_traffic.save_left=0"}, "other_traffic.save_left", "above 0 up to 1"},
      {{"cluster.storage_network.host_gigabits_per_second=200",
        "checkpoint.storage.frontend_gigabits_per_second=400"},
       "checkpoint.storage.frontend_gigabits_per_second",
       "400 Gb/s, and cluster.storage_network.host_gigabits_per_second says 200"},
      {{"cluster.storage_network.servers=0",
        "other_jobs={scenario: \"llama3-8b-1024\" set: \"gpus=64\" set: \"parallel.dp=64\" set: "
        "\"other_traffic.saving=true\"}"},
       "other_traffic.saving",
       "the cluster has no storage servers"},
      {{"cluster.storage_network.oversubscription=0"},
       "cluster.storage_network.oversubscription",
       "out of range"},
      // Collectives.
      {{"collectives={algorithm: \"ring\"}"}, "collectives.0.kind", "is missing"},
      {{"collectives={kind: ALL_REDUCE}"}, "collectives.0", "an algorithm or phases"},
      {{"collectives={kind: ALL_REDUCE algorithm: \"ring\" phases {kind: ALL_REDUCE}}"},
       "collectives.0",
       "both an algorithm and phases"},
      {{"collectives={kind: ALL_REDUCE algorithm: \"hierarchica\"}"},
       "collectives.0.algorithm",
       "did you mean \"hierarchical\"?"},
      {{"collectives={kind: ALL_GATHER algorithm: \"tree\"}"},
       "collectives.0.algorithm",
       "no way to run all-gather; allowed: nccl, ring, pat, hierarchical"},
      {{"collectives={kind: ALL_REDUCE phases {kind: ALL_REDUCE group: RAIL}}"},
       "collectives.0.phases",
       "nothing is done in each host"},
      {{"collectives={kind: ALL_REDUCE phases {kind: ALL_REDUCE algorithm: \"hierarchical\"}}"},
       "collectives.0.phases.0.algorithm",
       "no way to run one phase of all-reduce"},
      {{"collectives={kind: ALL_REDUCE phases {kind: ALL_REDUCE efficiency: 1.5}}"},
       "collectives.0.phases.0.efficiency",
       "above 0 up to 1"},
      {{"collectives={kind: ALL_REDUCE phases {kind: ALL_REDUCE group: RAILS}}"},
       "collectives",
       "RAIL"},
      // The model.
      {{"model.kv_heads=7"},
       "model.kv_heads",
       "7 does not divide heads (128); allowed: 1, 2, 4, 8"},
      {{"model.layers=100000", "model.hidden=10000000", "model.ffn=100000000"},
       "model",
       "parameters"},
      {{"model.experts=8", "model.experts_per_token=9"},
       "model.experts_per_token",
       "9 of 8 experts"},
      {{"parallel.ep=2"}, "parallel.ep", "the model has no experts"},
      {{"parallel.expert_tp=1"},
       "parallel.expert_tp",
       "the model has no experts to share; allowed: 0 or 8"},
      {{"model.experts=6", "model.experts_per_token=2", "parallel.ep=4"},
       "parallel.ep",
       "4 does not divide experts (6)"},
      {{"model.experts=384", "model.experts_per_token=2", "parallel.ep=3"},
       "parallel.ep",
       "3 does not divide dp (128)"},
      {{"model.experts=8", "model.experts_per_token=2", "model.first_dense_layers=126"},
       "model.first_dense_layers",
       "126 of 126 layers leave none for the experts"},
      {{"model.experts=8", "model.experts_per_token=2", "parallel.expert_tp=4"},
       "parallel.expert_tp",
       "4 is neither tp (8) nor 1"},
      {{"model.experts=8", "model.experts_per_token=2", "parallel.expert_tp=1", "parallel.ep=4"},
       "parallel.ep",
       "4 is not a multiple of tp (8)"},
      {{"model.experts=8", "model.experts_per_token=2", "model.expert_ffn=4097"},
       "parallel.tp",
       "8 does not divide model.expert_ffn (4097)"},
      {{"model.experts=8", "model.experts_per_token=2", "parallel.sequence_parallel=false"},
       "parallel.sequence_parallel",
       "is off, with experts and tp above 1"},
      {{"model.experts=8", "model.experts_per_token=2", "parallel.ep=8",
        "training.expert_imbalance=9"},
       "training.expert_imbalance",
       "9 times the mean is more than all tokens of 8 ranks"},
      {{"model.experts=8", "model.experts_per_token=2", "parallel.dp_shard=8"},
       "parallel.dp_shard",
       "not modelled beside experts"},
      {{"model.kv_lora_rank=512"}, "model.kv_heads", "latent attention makes keys for every head"},
      {{"model.q_lora_rank=512"}, "model.q_lora_rank", "kv_lora_rank is 0"},
      {{"parallel.dp_shard=24"}, "parallel.dp_shard", "24 does not divide dp (128)"},
      {{"parallel.dp_shard=8", "parallel.shard=NONE"}, "parallel.dp_shard", "shares out nothing"},
      {{"parallel.order=[TP, CP, PP]"}, "parallel.order", "3 entries that do not name each axis"},
      {{"parallel.order=[TP, CP, PP, PP]"}, "parallel.order", "do not name each axis once"},
      {{"parallel.context=ALL_TO_ALL", "parallel.tp=8", "parallel.cp=32", "gpus=4096",
        "parallel.dp=1", "training.global_batch=16"},
       "parallel.cp",
       "tp * cp (256) does not divide model.heads (128)"},
      {{"training.documents={mean_tokens: 0.001}", "training.sequence_length=131072"},
       "training.documents.mean_tokens",
       "documents in a sequence"},
      {{"training.documents={mean_tokens: 900}", "training.document_mask_fraction=0.5"},
       "training.document_mask_fraction",
       "is given beside training.documents"},
      // Tensor parallelism.
      {{"parallel.tp=7", "gpus=14336"}, "parallel.tp", "7 does not divide model.heads (128)"},
      {{"model.ffn=53252"}, "parallel.tp", "8 does not divide model.ffn (53252)"},
      {{"model.hidden=16388", "model.head_dim=128"},
       "parallel.tp",
       "8 does not divide model.hidden (16388)"},
      {{"model.vocab=128257"}, "parallel.tp", "8 does not divide model.vocab (128257)"},
      {{"model.heads=96", "model.kv_heads=6", "model.head_dim=128"},
       "parallel.tp",
       "8 neither divides model.kv_heads (6) nor is a multiple of it"},
      // Ranks.
      {{"parallel.dp=64"},
       "parallel",
       "8 * 1 * 16 * 64 = 8192 is not gpus = 16384; allowed: dp: 128"},
      {{"parallel.dp=64", "gpus=100"},
       "parallel",
       "allowed: a tp * cp * pp (128) that divides gpus"},
      {{"gpus=16385"},
       "parallel.dp",
       "gpus (16385) is not divisible by tp * cp * pp (8 * 1 * 16 = 128)"},
      {{"gpus=32768"}, "gpus", "32768 GPUs are more than the cluster has; allowed: 1 to 24576"},
      {{"cluster.gpus_per_tor=12"}, "cluster.gpus_per_tor", "not a multiple of gpus_per_host"},
      // Sequences.
      {{"parallel.cp=2", "training.sequence_length=8190", "training.global_batch=1024"},
       "training.sequence_length",
       "8190 is not divisible by 2 * cp (4)"},
      {{"training.sequence_length=8190"}, "training.sequence_length", "not divisible by tp (8)"},
      {{"training.sequence_length=100000000", "training.global_batch=12800000"},
       "training.global_batch",
       "too many tokens"},
      {{"training.sequence_length=100000000", "parallel.micro_batch=100000",
        "training.global_batch=12800000"},
       "parallel.micro_batch",
       "an activation of"},
      // Batches, schedules, chunks.
      {{"training.global_batch=2000"},
       "training.global_batch",
       "2000 is not divisible by dp * micro_batch (128 * 1 = 128); allowed: a multiple of 128, "
       "such as 1920"},
      {{"training.global_batch=2176"},
       "training.consecutive_micro_batches",
       "leave a last group of 1, fewer than the 16 pipeline stages"},
      {{"training.consecutive_micro_batches=8"},
       "training.consecutive_micro_batches",
       "fewer than the 16"},
      {{"training.schedule=1f1b"},
       "parallel.virtual_stages",
       "schedule 1f1b holds 1 chunk a stage"},
      {{"training.global_batch=100000000", "parallel.dp=1", "gpus=128"},
       "training.global_batch",
       "passes"},
      {{"model.layers=62"}, "parallel.pp", "62 layers do not fill 16 stages of 8 chunks"},
      {{"parallel.layers_per_chunk=[1, 2]"}, "parallel.layers_per_chunk", "one a model chunk"},
      // The job.
      {{"cluster.degraded={gpu: 16384}"},
       "cluster.degraded.0.gpu",
       "no rank 16384 in a job of 16384 GPUs"},
  };
  return rows;
}

TEST(ScenarioRules, the_scenario_that_the_rules_are_broken_in_is_right) {
  EXPECT_EQ(faults_of(kLargeScenario), "");
}

TEST(ScenarioRules, every_broken_rule_is_reported_at_its_field) {
  for (const Rule& rule : rules()) {
    const std::string all = faults_of(kLargeScenario, rule.sets);
    SCOPED_TRACE(rule.sets.front() + " gives:\n" + all);
    bool found = false;
    for (const Fault& fault : fault_list(kLargeScenario, rule.sets)) {
      if (fault.field != rule.field) continue;
      found = found || fault.text().find(rule.says) != std::string::npos;
    }
    EXPECT_TRUE(found) << rule.field << ": " << rule.says;
  }
}

// One mistake is one fault: rules that build on a field that is wrong keep silent.
TEST(ScenarioRules, one_mistake_is_reported_once) {
  for (const Rule& rule : rules()) {
    if (rule.sets.size() > 1) continue;
    const size_t expected =
        rule.says == "one a model chunk" ? 2 : 1;  // neither their number nor their sum is right
    EXPECT_EQ(fault_list(kLargeScenario, rule.sets).size(), expected)
        << faults_of(kLargeScenario, rule.sets);
  }
}

TEST(ScenarioRules, faults_stand_at_the_line_of_their_field) {
  const std::string text = R"(model { base: "llama3-405b" }
cluster { base: "meta-roce-24k" }
profile { base: "h100-sxm5-80gb" }
gpus: 16384
parallel {
  tp: 8
  pp: 16
  virtual_stages: 8
    dp: 5
}
training { sequence_length: 8192 global_batch: -5
  schedule: "interleaved-1f1b" document_mask_fraction: 2 })";
  const std::vector<Fault> faults = fault_list(text);
  ASSERT_EQ(faults.size(), 3U) << faults_of(text);
  EXPECT_THAT(faults[0].text(),
              HasSubstr("mine.textproto:11:34: training.global_batch: -5 is out of range"));
  EXPECT_THAT(
      faults[1].text(),
      HasSubstr("mine.textproto:12:32: training.document_mask_fraction: 2 is out of range"));
  EXPECT_THAT(faults[2].text(),
              HasSubstr("mine.textproto:5:1: parallel: tp * cp * pp * dp = 8 * 1 * 16 * 5 = 640"));
}

TEST(ScenarioRules, what_is_missing_is_listed_in_one_go) {
  const std::string all = faults_of("gpus: 8");
  for (const char* field : {"model.layers", "model.hidden", "model.ffn", "model.heads",
                            "model.vocab", "cluster.topology", "cluster.gpus", "profile.base",
                            "training.sequence_length", "training.global_batch"}) {
    EXPECT_THAT(all, HasSubstr(std::string(field) + ": is missing"));
  }
}

}  // namespace
}  // namespace herdsim

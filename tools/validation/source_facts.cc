#include "tools/validation/source_facts.h"

#include <algorithm>

namespace herdsim {
namespace {

constexpr std::string_view kProxyTokenizer =
    "README_405b.md: \"Llama3.1 405B uses the GPT2BPETokenizer as a proxy\"";
constexpr std::string_view kGrok =
    "grok1_314b.yaml: tokenizer Meta-Llama-3-70B, no cross_entropy_loss_fusion, "
    "moe_expert_capacity_factor 1.0; configure.sh: "
    "NVTE_FUSED_ATTN=0";
// Transformer Engine's own: all-gathers in tp (here 4) chunks, reduce-scatters in 4
// (pytorch/module/base.py, get_default_config); NeMo reduces in fp32 unless told otherwise.
constexpr std::string_view kNemotron15b =
    "nemotron4-15b-synth.yaml: ub_tp_comm_overlap without a configuration, no grad_sync_dtype";
constexpr std::string_view kGptOss =
    "gpt_oss_workload_base_configs.py, H100: recompute_modules layernorm, moe_act; "
    "gpt_oss_provider.py: moe_token_dispatcher_type alltoall";
constexpr std::string_view kGpt2Tokens = "50257", kLlama3Tokens = "128256";

// Megatron's vocabulary-parallel cross entropy without fusion (tensor_parallel/cross_entropy.py),
// bytes a logit: forward a cast to fp32 (6), the maximum (4), its subtraction, exp and the division
// in place (8 each), the sum (4); backward the product with the loss's gradient (8) and a cast back
// (6).
constexpr std::string_view kUnfusedLoss = "logit_bytes=52; logit_stream=FRAMEWORK";
// What Megatron-LM does without being asked for more (training/arguments.py): bf16 gradients are
// reduced in fp32.
constexpr std::string_view kMegatronDefaults =
    "logit_bytes=52; logit_stream=FRAMEWORK; gradient_reduce_type=FP32";
constexpr std::string_view kFlagPerf =
    "the run's script: --use-flash-attn, no --cross-entropy-loss-fusion";
// FlagScale's own layers of then (megatron/model/transformer.py), bytes a token and channel.
// Forward: norms 8, bias-dropout-adds 12, keys and values repeated to all heads 8, rotary embedding
// of both one operation after another 24 each; SwiGLU in two 10 a channel of ffn. Backward: norms
// 20, adds 20, repeated heads 4, rotary embedding 28 each, the concatenated gradient of the split
// 5; SwiGLU 26.
constexpr std::string_view kFlagScaleLayers =
    "logit_bytes=52; logit_stream=FRAMEWORK; gradient_reduce_type=FP32; "
    "forward.hidden_bytes=76; forward.ffn_bytes=10; forward.stream=FRAMEWORK; "
    "backward.hidden_bytes=105; backward.ffn_bytes=26; backward.stream=FRAMEWORK";
constexpr std::string_view kFlagPerf70b =
    "README.md: FlagScale.git@6fc099c; megatron_main.sh: pretrain_llama.py, --use-flash-attn, "
    "--group-query-attention, no --use-mcore-models";
// Repeated layers have the policy of paxml's model_params.py unless they say another; the smallest
// model repeats none, so that nothing is made again, and was run without flash attention.
constexpr std::string_view kPaxSmallest =
    "paxml scripts_gpu/configs.py: 126M has USE_REPEATED_LAYER False; README.md: no flash "
    "attention";
constexpr std::string_view kPax5b =
    "paxml scripts_gpu/configs.py: GPT5B has CHECKPOINT_POLICY SAVE_DOT_WITH_NO_BATCH_DIM, "
    "input_dropout_prob 0.1";
constexpr std::string_view kPax175b =
    "paxml model_params.py: CHECKPOINT_POLICY SAVE_NOTHING; scripts_gpu/configs.py: GPT175B says "
    "no other";
// Dropout of each layer's input draws its bits in the forward pass and again with what is
// recomputed: counters read and bits written by a kernel (8 bytes an element), read again (4), the
// input read and written (4); the backward pass masks a gradient (4) beside.
constexpr std::string_view kPax5bDropout = "forward.hidden_bytes=40; backward.hidden_bytes=44";
constexpr std::string_view kPaxKeepsProducts =
    "selective: core attention, norms and activation functions";
// NCCL found two of a node's four Omni-Path ports for a ring and moved 40.5 Gb/s over each, staged
// in host memory.
constexpr std::string_view kJeanZay = "2x40.5 Gb/s NICs per node";
constexpr std::string_view kBlocking = "launch_blocking=true";
// DeepSpeed's bf16 optimizer adds gradients to fp32 ones: a cast (6) and an addition (12). They are
// all-reduced.
constexpr std::string_view kBloomBf16 =
    "launch_blocking=true; gradient_accumulation_bytes=18; gradient_accumulation_type=FP32; "
    "gradient_reduce_type=BF16; "
    "parameter_gather_type=BF16";
constexpr std::string_view kBloom =
    "tr11-176B-ml.slurm: Megatron-DeepSpeed, CUDA_LAUNCH_BLOCKING=1; "
    "experiments/bandwidth/all_reduce_bench-a100-n4.txt: "
    "rings over hfi1_0 and hfi1_3, 40.5 Gb/s; chronicles-prequel.md: bf16 accumulates in fp32";
// PaddleNLP splits tokens over tensor ranks since 2.7 only.
// Of its later campaign on the same machine, weak_scaling_160gpu/README.md, the 70B's steps on 32
// to 160 GPUs take as long as its gathers and reductions at 22 to 23 GB/s a GPU.
constexpr std::string_view kKempnerNetwork =
    "4 GPUs per node, NVLink between each pair; InfiniBand, 200 Gb/s per GPU by what its jobs "
    "reach";
constexpr std::string_view kKempner =
    "its own loop (train.py, parallel.py, tensor_parallel.py): catalog/software/kempnerforge";
constexpr std::string_view kKempnerStages =
    "tensor_parallel.py: pipeline stages use basic TP without SequenceParallel";
constexpr std::string_view kPaddle =
    "README.md: paddle-2.5.1; config/requirements.txt: paddlenlp==2.6.0rc0";

}  // namespace

const std::vector<SourceFact>& source_facts() {
  static const std::vector<SourceFact> kFacts = {
      {.where = "NVIDIA/dgxc-benchmarking@v24.11.1 llama3.1/README_405b.md",
       .model = "Llama3.1-405B",
       .cells = {{"vocab", kGpt2Tokens}},
       .stated = kProxyTokenizer},
      {.where = "NVIDIA/dgxc-benchmarking@v25.02 llama3.1/README_405b.md",
       .model = "Llama3.1-405B",
       .cells = {{"vocab", kGpt2Tokens}},
       .stated = kProxyTokenizer},
      {.where = "NVIDIA/dgxc-benchmarking@v24.11.1 nemotron/README_340b.md",
       .model = "Nemotron4-340B",
       .cells = {{"attention_kernel", "fa2"}},
       .stated = "nemotron/configure.sh: NVTE_FUSED_ATTN=0 for 340b"},
      {.where = "NVIDIA/dgxc-benchmarking@v25.02 nemotron/README_15b.md",
       .model = "Nemotron4-15B",
       .cells = {{"software_set", "tp_overlap_chunks=4; gradient_reduce_type=FP32"}},
       .stated = kNemotron15b},
      {.where = "NVIDIA/dgxc-benchmarking@v24.11.1 grok1/",
       .model = "Grok1",
       .cells = {{"vocab", kLlama3Tokens},
                 {"attention_kernel", "fa2"},
                 {"expert_capacity", "1"},
                 {"software_set", kUnfusedLoss}},
       .stated = kGrok},
      {.where = "NVIDIA/dgxc-benchmarking@v25.04 grok1/",
       .model = "Grok1",
       .cells = {{"vocab", kLlama3Tokens},
                 {"attention_kernel", "fa2"},
                 {"expert_capacity", "1"},
                 {"software_set", kUnfusedLoss}},
       .stated = kGrok},
      {.where = "NVIDIA/Megatron-LM@d98e8a64dd images/strong_scaling.png",
       .model = "GPT-177B",
       .cells = {{"tp", "8"}, {"pp", "6"}},
       .stated = "images/model_table.png: the model of 177B has TP 8 and PP 6; all sizes of the "
                 "job are multiples of 48"},
      {.where = "NVIDIA/NeMo@8cfedd7203 docs/source/performance/performance_long_sequence.md",
       .model = "LLAMA2-7B",
       .cells = {{"software", "megatron-te-2403"}},
       .stated = "its first lines: Container NeMo24.03.01.framework"},
      {.where = "NVIDIA-NeMo/Megatron-Bridge",
       .model = "GPT OSS 120B",
       .gpu = "H100",
       .cells = {{"recompute", "selective: norms and activation functions"},
                 {"software_set", "expert_dispatch_once=false"}},
       .stated = kGptOss},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/llama3_8B-megatron/",
       .model = "Llama3-8B",
       .cells = {{"attention_kernel", "fa2"}, {"software_set", kMegatronDefaults}},
       .stated = kFlagPerf},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/llama3_70B-megatron/",
       .model = "Llama3-70B",
       .cells = {{"attention_kernel", "fa2"}, {"software_set", kMegatronDefaults}},
       .stated = kFlagPerf},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/llama2_70B-megatron/",
       .model = "Llama2-70B",
       .cells = {{"attention_kernel", "fa2"}, {"software_set", kFlagScaleLayers}},
       .stated = kFlagPerf70b},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/aquila2_7b-flagscale/",
       .model = "Aquila2-7B",
       .cells = {{"attention_kernel", "fa2"}, {"software_set", kMegatronDefaults}},
       .stated = kFlagPerf},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/llama2_7b-deepspeed/",
       .model = "Llama2-7B",
       .cells = {{"software", "deepspeed"}, {"attention_kernel", "fa2"}},
       .stated = "README.md: deepspeed 0.11.1, ZeRO-DP O3, flash attention 2"},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/llama1_7B-paddle/",
       .model = "LLaMA",
       .cells = {{"software", "paddlenlp"}, {"sp", "0"}},
       .stated = kPaddle},
      {.where = "FlagOpen/FlagPerf@1b5a030398 training/nvidia/gpt3_6.7B-paddle/",
       .model = "GPT3",
       .cells = {{"software", "paddlenlp"}, {"sp", "0"}},
       .stated = kPaddle},
      {.where = "arXiv 2412.19437",
       .model = "DeepSeek-V3 671B",
       .cells = {{"recompute", "selective: norms and activation functions"}},
       .stated = "section 3.2.3: RMSNorm and up-projections are made again, section 3.3.3: SwiGLU"},
      {.where = "arXiv 2402.15627",
       .model = "GPT-175B (Megatron-LM)",
       .cells = {{"software", "megatron-2023"},
                 {"software_set", "dp_overlap=false; dp_gather_overlap=false"}},
       .stated = "section 6.1: the baseline is Megatron-LM at a commit chosen months before the "
                 "paper; reductions "
                 "overlap since core 0.4"},
      {.where = "gkarfakis19/Rapid-LLM@317a2cbd54 validation_scripts/imec_data/uci_train.csv",
       .model = "Llama2-7B",
       .cells = {{"gpus_per_node", "2"}, {"interconnect", "200 Gb/s per node"}},
       .stated = "uci_train_validation.py: NVLink joins pairs, PCIe at 25 GB/s the pairs; a pair "
                 "is a node here, and its ranks share that"},
      {.where = "NVIDIA/JAX-Toolbox@",
       .model = "GPT-126M (PaxML)",
       .cells = {{"attention_kernel", "unfused"}, {"recompute", "none"}},
       .stated = kPaxSmallest},
      {.where = "NVIDIA/JAX-Toolbox@",
       .model = "GPT-5B (PaxML)",
       .cells = {{"software", "paxml"},
                 {"recompute", kPaxKeepsProducts},
                 {"software_set", kPax5bDropout}},
       .stated = kPax5b},
      {.where = "NVIDIA/JAX-Toolbox@",
       .model = "GPT-175B (PaxML)",
       .cells = {{"software", "paxml"}, {"recompute", "full"}},
       .stated = kPax175b},
      {.where = "NVIDIA/dgxc-benchmarking@v24.11.1 paxml/",
       .model = "GPT3-5B (PaxML)",
       .cells = {{"software", "paxml"},
                 {"recompute", kPaxKeepsProducts},
                 {"fsdp_zero", "HSDP: FSDP(8)"},
                 {"software_set", kPax5bDropout}},
       .stated = "paxml_mod_configs.py: SAVE_DOT_ONLY; configure.sh: FSDP=1 node, DCN_MESH_SHAPE "
                 "[DP, FSDP, 1]; paxml scripts_gpu/configs.py: GPT5B has input_dropout_prob 0.1"},
      {.where = "NVIDIA/dgxc-benchmarking@v24.11.1 paxml/",
       .model = "GPT3-175B (PaxML)",
       .cells = {{"software", "paxml"},
                 {"recompute", "selective: saves q,k,v,out projection"},
                 {"fsdp_zero", "HSDP: FSDP(128)"}},
       .stated = "paxml_mod_configs.py: SAVE_QKV_OUT_PROJ; configure.sh: FSDP=16 nodes, "
                 "DCN_MESH_SHAPE [DP, FSDP, 1]"},
      {.where = "bigscience-workshop/bigscience@9e64edec2a train/tr11-176B-ml/",
       .model = "GPT-",
       .precision = "bf16",
       .cells = {{"software", "megatron-deepspeed"},
                 {"interconnect", kJeanZay},
                 {"software_set", kBloomBf16}},
       .stated = kBloom},
      {.where = "bigscience-workshop/bigscience@9e64edec2a train/tr11-176B-ml/",
       .model = "GPT-",
       .cells = {{"software", "megatron-deepspeed"},
                 {"interconnect", kJeanZay},
                 {"software_set", kBlocking}},
       .stated = kBloom},
      {.where = "bigscience-workshop/bigscience@9e64edec2a train/tr11-176B-ml/",
       .model = "BLOOM-",
       .cells = {{"software", "megatron-deepspeed"},
                 {"interconnect", kJeanZay},
                 {"software_set", kBloomBf16}},
       .stated = kBloom},
      {.where = "KempnerInstitute/KempnerForge@5666d0d161",
       .model = "Llama3-",
       .pipelined = true,
       .cells = {{"software", "kempnerforge"}, {"interconnect", kKempnerNetwork}, {"sp", "0"}},
       .stated = kKempnerStages},
      {.where = "KempnerInstitute/KempnerForge@5666d0d161",
       .model = "Llama3-",
       .cells = {{"software", "kempnerforge"}, {"interconnect", kKempnerNetwork}},
       .stated = kKempner},
      {.where = "VIA-Research/vTrain@f8dda8473a",
       .model = "GPT-",
       .cells = {{"software", "megatron-deepspeed"}, {"interconnect", "800 Gb/s per node"}},
       .stated = "data/README.md: measured with Megatron-DeepSpeed; src/config.py: "
                 "inter_node_bandwidth, of a node, in Gbps, "
                 "800 in its validation configurations"},
  };
  return kFacts;
}

const SourceFact* facts_of_source(std::string_view source_where, std::string_view model,
                                  std::string_view gpu, std::string_view precision,
                                  bool pipelined) {
  constexpr std::string_view kSite = "github ";
  if (source_where.starts_with(kSite)) source_where.remove_prefix(kSite.size());
  const auto& facts = source_facts();
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const SourceFact& fact) {
    return source_where.starts_with(fact.where) && model.starts_with(fact.model) &&
           gpu.starts_with(fact.gpu) && (fact.precision.empty() || fact.precision == precision) &&
           (pipelined || !fact.pipelined);
  });
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace herdsim

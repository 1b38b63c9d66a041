#include "tests/sim/executor/job_cases.h"

namespace herdsim {
namespace {

constexpr const char* kRoce = "llama3-405b-16384";
constexpr const char* kRails = "llama3-70b-8192";

// A cluster in which hosts, racks and pods of a small job differ, and in which pod uplinks bind.
const std::vector<std::string> kTightPods = {"cluster.gpus=512", "cluster.gpus_per_pod=64",
                                             "cluster.pod_oversubscription=20",
                                             "cluster.placement=RANDOM_HOSTS"};
const std::vector<std::string> kSlowGpu = {"cluster.degraded={gpu: 5 compute_factor: 0.83}"};
const std::vector<std::string> kSlowNic = {"cluster.degraded={gpu: 9 nic_factor: 0.37}"};
const std::vector<std::string> kChunked = {"software.tp_overlap=CHUNKED"};
const std::vector<std::string> kNoOverlap = {"software.dp_overlap=false"};

std::vector<std::string> joined(std::initializer_list<std::vector<std::string>> parts) {
  std::vector<std::string> all;
  for (const std::vector<std::string>& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void append_named(std::vector<JobCase>& cases) {
  const auto add = [&](std::string name, const SmallPlan& plan,
                       const std::vector<std::string>& more = {}, const char* base = kRoce) {
    cases.push_back({std::move(name), base, small_job(plan, more)});
  };
  const SmallPlan kStandard{
      .tp = 4, .pp = 4, .dp = 4, .virtual_stages = 2, .schedule = "interleaved-1f1b"};
  add("symmetric", kStandard);
  add("one slow GPU", kStandard, kSlowGpu);
  add("one slow NIC", kStandard, kSlowNic);
  add("slow GPU and slow NIC", kStandard, joined({kSlowGpu, kSlowNic}));
  add("three slow GPUs of different speed", kStandard,
      {"cluster.degraded={gpu: 0 compute_factor: 0.9}",
       "cluster.degraded={gpu: 17 compute_factor: 0.7}",
       "cluster.degraded={gpu: 63 compute_factor: 0.95 nic_factor: 0.5}"});
  add("two equal slow GPUs", kStandard,
      {"cluster.degraded={gpu: 3 compute_factor: 0.9}",
       "cluster.degraded={gpu: 35 compute_factor: 0.9}"});
  add("random hosts", kStandard, {"cluster.placement=RANDOM_HOSTS", "seed=7"});
  add("random hosts and a slow NIC", kStandard,
      joined({{"cluster.placement=RANDOM_HOSTS", "seed=8"}, kSlowNic}));
  add("tight pods", kStandard, kTightPods);
  add("tight pods and a slow GPU", kStandard, joined({kTightPods, kSlowGpu, {"seed=3"}}));
  add("tight pods, wide replicas", {.tp = 2, .pp = 2, .dp = 32, .micro_batches = 2}, kTightPods);
  add("tight pods without sharding", {.tp = 8, .pp = 2, .dp = 8, .micro_batches = 2},
      joined({kTightPods, {"parallel.shard=NONE"}}));
  add("NICs too slow for the step", kStandard, {"cluster.nic_gigabits_per_second=10"});
  add("NICs too slow, one slower still", kStandard,
      joined({{"cluster.nic_gigabits_per_second=10"}, kSlowNic}));
  add("NICs too slow, random hosts", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.nic_gigabits_per_second=5", "cluster.placement=RANDOM_HOSTS"});
  add("rails", {.tp = 8, .pp = 4, .dp = 4}, {}, kRails);
  add("rails, one slow NIC", {.tp = 8, .pp = 4, .dp = 4}, kSlowNic, kRails);
  add("rails, random hosts", {.tp = 4, .pp = 4, .dp = 8},
      {"cluster.placement=RANDOM_HOSTS", "cluster.gpus=1024"}, kRails);
  add("context parallel", {.tp = 2, .cp = 4, .pp = 2, .dp = 2});
  add("context parallel over hosts, slow GPU", {.tp = 4, .cp = 4, .pp = 2, .dp = 2}, kSlowGpu);
  add("context parallel, tight pods", {.tp = 2, .cp = 4, .pp = 2, .dp = 4}, kTightPods);
  add("tensor parallel alone", {.tp = 8}, kSlowGpu);
  add("tensor parallel over hosts", {.tp = 16, .dp = 2}, kSlowNic);
  add("data parallel alone", {.dp = 32, .micro_batches = 2}, kSlowGpu);
  add("pipeline alone", {.pp = 8, .micro_batches = 8}, kSlowGpu);
  add("one GPU", {});
  add("half a host", {.tp = 2, .pp = 2}, {"cluster.degraded={gpu: 3 compute_factor: 0.9}"});
  add("chunked transfers", kStandard, kChunked);
  add("chunked transfers, slow GPU, random hosts", kStandard,
      joined({kChunked, kSlowGpu, {"cluster.placement=RANDOM_HOSTS"}}));
  add("nothing overlapped", kStandard,
      joined({kNoOverlap, kSlowGpu, {"software.tp_backward_overlap=false"}}));
  add("no sequence parallelism", kStandard,
      joined({kSlowNic, {"parallel.sequence_parallel=false"}}));
  add("full recomputation", kStandard, joined({kSlowGpu, {"training.recompute=FULL"}}));
  add("selective recomputation", kStandard, joined({kSlowGpu, {"training.recompute=SELECTIVE"}}));
  add("uneven layers", {.tp = 2, .pp = 4, .dp = 4},
      joined({{"model.layers=11", "parallel.layers_per_chunk=[4, 3, 2, 2]"}, kSlowGpu}));
  add("slow host and spread speeds", kStandard,
      {"software.host_milliseconds_per_step=3", "software.gpu_speed_sigma=0.01"});
  const std::vector<std::string> kFewUplinks = {"cluster.tor_uplinks=8", "cluster.gpus=1024"};
  for (const char* routing : {"ecmp", "ecmp-split", "e-ecmp", "path-pinning", "adaptive",
                              "packet-spraying", "traffic-engineering"}) {
    add(std::string(routing) + ", few uplinks, slow NICs", {.tp = 2, .pp = 4, .dp = 16},
        joined({kFewUplinks, {std::string("cluster.routing=") + routing, "cluster.queue_pairs=2",
                              "cluster.nic_gigabits_per_second=10"}}));
  }
  add("ecmp, random hosts, a slow GPU", {.tp = 2, .pp = 4, .dp = 16},
      joined({kFewUplinks, kSlowGpu, {"cluster.routing=ecmp", "cluster.queue_pairs=1",
                                      "cluster.placement=RANDOM_HOSTS"}}));
  add("NIC down", kStandard, {"cluster.degraded={gpu: 9 nic_factor: 0}"});
  add("half a ToR's uplinks", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.degraded={tor: 1 uplink_factor: 0.5}"});
  add("a ToR's uplinks at a twentieth, slow NICs", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.degraded={tor: 1 uplink_factor: 0.05}", "cluster.nic_gigabits_per_second=10"});
  add("a NIC flaps", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.degraded={gpu: 9 nic_factor: 0 at_s: 0.01 for_s: 0.05}",
       "cluster.nic_gigabits_per_second=10"});
  add("a ToR flaps, another's uplinks too", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.degraded={tor: 1 down: true at_s: 0.02 for_s: 0.05}",
       "cluster.degraded={tor: 2 uplink_factor: 0 at_s: 0.03 for_s: 0.01}",
       "cluster.nic_gigabits_per_second=10"});
  add("pod uplinks at half, tight pods", kStandard,
      joined({kTightPods, {"cluster.degraded={pod: 0 uplink_factor: 0.5}"}}));
  add("hosts that are not available", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.unavailable_hosts=[1, 2, 5]", "cluster.unavailable_fraction=0.1"});
  add("packed pods", {.tp = 2, .pp = 4, .dp = 8},
      joined({kTightPods, {"cluster.placement=PACKED_PODS"}}));
  add("fp8", kStandard, joined({kSlowGpu, {"training.precision=FP8"}}));
  add("gradients of the head late, slow GPU", {.tp = 2, .pp = 4, .dp = 4},
      joined({kSlowGpu, {"software.head_weight_gradients_deferred=3"}}));
}

// What experts, other ways of sharing sequences and state, and uneven work add.
void append_uneven(std::vector<JobCase>& cases) {
  const auto add = [&](std::string name, const SmallPlan& plan,
                       const std::vector<std::string>& more) {
    cases.push_back({std::move(name), kRoce, small_job(plan, more)});
  };
  const SmallPlan plan{.tp = 2, .pp = 2, .dp = 8};
  const std::vector<std::string> experts = {"model.experts=8", "model.experts_per_token=2",
                                            "model.expert_ffn=4096", "parallel.ep=8"};
  const std::vector<std::string> whole = {"parallel.expert_tp=1", "parallel.ep=4"};
  add("experts", plan, experts);
  add("experts, slow GPU and slow NIC", plan, joined({experts, kSlowGpu, kSlowNic}));
  add("experts, tight pods", plan, joined({experts, kTightPods}));
  add("experts, first layer dense, shared", plan,
      joined({experts, kSlowGpu, {"model.first_dense_layers=1", "model.shared_experts=1"}}));
  add("whole experts over tensor ranks", plan, joined({experts, whole, kSlowNic}));
  add("experts, one busier", plan, joined({experts, {"training.expert_imbalance=1.7"}}));
  add("experts, one busier, slow GPU", plan,
      joined({experts, whole, kSlowGpu, {"training.expert_imbalance=2.3"}}));
  add("experts, context parallel", {.tp = 2, .cp = 2, .pp = 2, .dp = 4},
      joined({experts, {"parallel.ep=4"}, kSlowGpu}));
  add("experts, pairs of passes", {.pp = 4, .dp = 8, .micro_batches = 8, .schedule = "dualpipe"},
      joined({experts, kSlowGpu, {"software.pass_overlap=true"}}));
  add("latent attention", plan,
      joined({kSlowGpu,
              {"model.kv_heads=128", "model.kv_lora_rank=512", "model.q_lora_rank=1536",
               "model.rope_head_dim=64"}}));
  const std::vector<std::string> documents = {"training.documents={mean_tokens: 1000 sigma: 1.2}"};
  add("documents", {.tp = 2, .pp = 2, .dp = 4}, documents);
  add("documents, context parallel, slow GPU", {.tp = 2, .cp = 4, .pp = 2, .dp = 2},
      joined({documents, kSlowGpu}));
  add("ring", {.tp = 2, .cp = 4, .pp = 2, .dp = 2}, joined({{"parallel.context=RING"}, kSlowGpu}));
  add("exchange of heads", {.tp = 2, .cp = 4, .pp = 2, .dp = 2},
      joined({{"parallel.context=ALL_TO_ALL"}, kSlowNic}));
  add("replicas of shards", {.tp = 2, .pp = 2, .dp = 8},
      joined({{"parallel.shard=ZERO3", "parallel.dp_shard=4"}, kSlowNic}));
  add("replicas of shards, random hosts", {.dp = 32, .micro_batches = 2},
      {"parallel.shard=FSDP_KEEP", "parallel.dp_shard=8", "cluster.placement=RANDOM_HOSTS"});
  add("pipeline outermost", {.tp = 4, .pp = 4, .dp = 4},
      joined({{"parallel.order=[TP, CP, DP, PP]"}, kSlowGpu}));
  add("tied embeddings", {.tp = 2, .pp = 4, .dp = 4},
      joined({{"model.tied_embeddings=true"}, kSlowGpu}));
}

// Fabrics without a switch above all others, and sums in the switches.
void append_meshes(std::vector<JobCase>& cases) {
  const auto add = [&](std::string name, const SmallPlan& plan,
                       const std::vector<std::string>& more, const char* base = kRoce) {
    cases.push_back({std::move(name), base, small_job(plan, more)});
  };
  const SmallPlan plan{.tp = 4, .pp = 4, .dp = 4};
  const std::vector<std::string> torus = {"cluster.base=tpu-v4-4k", "cluster.gpus=64",
                                          "cluster.torus=[4, 4, 4]"};
  const std::vector<std::string> experts = {"model.experts=8", "model.experts_per_token=2",
                                            "model.expert_ffn=4096", "parallel.ep=4"};
  add("torus", plan, torus);
  add("torus without ends joined, experts", plan,
      joined({torus, experts, {"cluster.torus_wraps=false"}}));
  add("torus, axes across", {.tp = 8, .pp = 2, .dp = 4}, torus);
  add("torus, groups that are no boxes", {.tp = 2, .pp = 3, .dp = 6}, torus);
  add("torus, slow chip", plan, joined({torus, kSlowNic}));
  add("dragonfly", plan,
      {"cluster.base=frontier-38k", "cluster.gpus=64", "cluster.gpus_per_tor=4",
       "cluster.gpus_per_pod=16", "cluster.local_lanes=2", "cluster.global_lanes=1"});
  // Cables in groups and between them carry the same.
  const std::vector<std::string> alike = {
      "cluster.base=frontier-38k", "cluster.gpus=128",      "cluster.gpus_per_tor=4",
      "cluster.gpus_per_pod=32",   "cluster.local_lanes=1", "cluster.global_lanes=1",
      "cluster.placement=RANDOM_HOSTS"};
  add("dragonfly, random hosts", {.dp = 32}, alike);
  add("dragonfly, by way of third groups, slow NIC", plan,
      joined({alike, {"cluster.routing=ugal", "cluster.detour_share=0.75"}, kSlowNic}));
  add("dragonfly, experts, a switch down for a while", {.tp = 2, .pp = 2, .dp = 16},
      joined({experts,
              {"cluster.base=frontier-38k", "cluster.gpus=64", "cluster.gpus_per_tor=4",
               "cluster.gpus_per_pod=16", "cluster.local_lanes=2", "cluster.global_lanes=1",
               "cluster.degraded={tor: 1 down: true at_s: 0.02 for_s: 0.05}"}}));
  add("graph", {.tp = 8, .pp = 2, .dp = 16}, {"cluster.base=leaf-spine-256"});
  add("graph, a switch at half, random hosts", {.tp = 2, .pp = 4, .dp = 16},
      {"cluster.base=leaf-spine-256", "cluster.degraded={tor: 2 uplink_factor: 0.5}",
       "cluster.placement=RANDOM_HOSTS"});
  add("sums in the switches", {.tp = 8, .pp = 2, .dp = 8},
      {"parallel.shard=NONE", "cluster.in_network_reduction=true"}, kRails);
  add("sums in the switches, tensor parallel over hosts", {.tp = 16, .dp = 4},
      joined({{"parallel.shard=NONE", "cluster.in_network_reduction=true",
               "parallel.sequence_parallel=false"},
              kSlowNic}),
      kRails);
}

// A job that another, or two, meet on the fabric.
void append_shared(std::vector<JobCase>& cases) {
  const auto add = [&](std::string name, const SmallPlan& plan,
                       const std::vector<std::string>& more) {
    cases.push_back({std::move(name), kRoce, small_job(plan, more)});
  };
  const SmallPlan plan{.tp = 2, .pp = 2, .dp = 8}, wide{.dp = 32, .micro_batches = 2};
  const std::vector<std::string> random = {"cluster.placement=RANDOM_HOSTS"};
  add("beside a twin, tight pods", plan, joined({kTightPods, {other_job(plan, random)}}));
  add("beside another shape, tight pods, slow GPU", plan,
      joined({kTightPods, kSlowGpu, {other_job(wide, random)}}));
  add("beside a job with a slow NIC, tight pods", wide,
      joined({kTightPods, {other_job(plan, joined({random, kSlowNic}))}}));
  add("beside two jobs, one later, tight pods", plan,
      joined({kTightPods,
              {other_job(wide, random, 0.01), other_job({.tp = 4, .pp = 2, .dp = 4}, random)}}));
  add("beside a job in the same racks, a ToR flaps", {.tp = 2, .pp = 4, .dp = 8},
      {"cluster.degraded={tor: 1 uplink_factor: 0.1 at_s: 0.02 for_s: 0.05}",
       "cluster.nic_gigabits_per_second=10", "cluster.tor_uplinks=4",
       "cluster.unavailable_hosts=[1, 3, 5, 7, 9, 11, 13, 15]", other_job(plan, {})});
  add("beside constant traffic, tight pods", plan,
      joined({kTightPods, {"other_traffic.tor_uplinks=0.4", "other_traffic.pod_uplinks=0.7"}}));
}

// Collectives in phases, over groups with several ranks a host and with one.
void append_phased(std::vector<JobCase>& cases) {
  const auto add = [&](std::string name, const SmallPlan& plan, const std::vector<std::string>& more) {
    cases.push_back({std::move(name), kRoce, small_job(plan, more)});
  };
  const SmallPlan wide{.tp = 2, .pp = 2, .dp = 16};
  const std::vector<std::string> hierarchical = {
      "parallel.shard=NONE", "collectives={kind: ALL_REDUCE communicator: DP algorithm: \"hierarchical\"}"};
  const std::vector<std::string> by_level = {
      "collectives={kind: REDUCE_SCATTER phases {kind: REDUCE_SCATTER group: NODE channels: 4} phases {kind: "
      "REDUCE_SCATTER group: RAIL efficiency: 0.5}}",
      "collectives={kind: ALL_GATHER phases {kind: ALL_GATHER group: RAIL algorithm: \"ring\"} phases {kind: ALL_GATHER "
      "group: NODE}}"};
  add("hierarchical, tight pods", wide, joined({hierarchical, kTightPods}));
  add("hierarchical, slow NIC, slow GPU", wide, joined({hierarchical, kSlowNic, kSlowGpu}));
  add("phases by level, random hosts, NICs too slow", wide,
      joined({by_level, {"cluster.placement=RANDOM_HOSTS", "cluster.nic_gigabits_per_second=10"}}));
  add("phases by level, tight pods, slow NIC", {.tp = 1, .pp = 2, .dp = 32}, joined({by_level, kTightPods, kSlowNic}));
}

void append_rows(std::vector<JobCase>& cases) {
  for (const std::string& schedule : schedule_names()) {
    SmallPlan plan{.tp = 2, .pp = 4, .dp = 4, .micro_batches = 8, .schedule = schedule};
    if (find_schedule(schedule)->uses_virtual_stages) plan.virtual_stages = 2;
    cases.push_back({schedule + ", slow GPU, tight pods", kRoce,
                     small_job(plan, joined({kSlowGpu, kTightPods}))});
  }
  for (const char* shard : {"NONE", "ZERO1", "ZERO2", "ZERO3", "FSDP_KEEP"}) {
    const std::vector<std::string> sharding = {std::string("parallel.shard=") + shard};
    cases.push_back({std::string(shard) + ", slow NIC, random hosts", kRoce,
                     small_job({.tp = 2, .pp = 2, .dp = 8},
                               joined({sharding, kSlowNic, {"cluster.placement=RANDOM_HOSTS"}}))});
    cases.push_back({std::string(shard) + ", nothing overlapped", kRoce,
                     small_job({.tp = 2, .pp = 2, .dp = 4}, joined({sharding, kNoOverlap}))});
  }
}

}  // namespace

const std::vector<JobCase>& job_cases() {
  static const std::vector<JobCase> kCases = [] {
    std::vector<JobCase> cases;
    append_named(cases);
    append_uneven(cases);
    append_meshes(cases);
    append_shared(cases);
    append_phased(cases);
    append_rows(cases);
    return cases;
  }();
  return kCases;
}

}  // namespace herdsim

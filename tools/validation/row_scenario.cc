#include "tools/validation/row_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "sim/models/clock_power.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/check_relations.h"
#include "tools/scenario/field_origins.h"
#include "tools/scenario/load_scenario.h"
#include "tools/validation/assumed_plan.h"
#include "tools/validation/interconnect_words.h"
#include "tools/validation/measured_hosts.h"
#include "tools/validation/row_schedule.h"
#include "tools/validation/row_words.h"
#include "tools/validation/table_gpus.h"

namespace herdsim {
namespace {

// Whether the embedding and the head are one matrix, as the number of all parameters says: where it is nearer to that
// of such a model than a quarter of the matrix. Of large models, where the matrix is less than 2 % of it, the number is
// rounded and tells nothing.
bool tied_by_count(ModelArchitecture model, double parameters) {
  model.tied_embeddings = true;
  const auto matrix = static_cast<double>(model.embedding_parameters());
  return matrix > 0.02 * parameters && std::abs(parameters - static_cast<double>(model.parameters())) < 0.25 * matrix;
}

// Megatron-LM (core/parallel_state.py; mpu/initialize.py of 2021) and DeepSpeed
// (runtime/pipe/topology.py, PipeModelDataParallelTopology) number the replicas of a stage next to
// each other and stages last.
constexpr std::array<Axis, kAxes> kReplicasBeforeStages = {Axis::kTp, Axis::kCp, Axis::kDp,
                                                           Axis::kPp};

class RowReading {
 public:
  RowReading(const RunRow& row, const RowParts& parts, const std::vector<std::string>& sets)
      : row_(row), parts_(parts), software_sets_(sets) {}

  RowScenario read() {
    s_.name = row_.id;
    const bool complete = model() && software() && machine() && plan();
    if (complete) {
      training();
      choose_schedule(row_, words_, s_, out_.assumed);
      check();
    }
    if (!row_.by_source.empty()) {
      out_.assumed.push_back(
          fmt::format("{} ({})", fmt::join(row_.by_source, ", "), row_.stated));
    }
    return std::move(out_);
  }

 private:
  bool skip(std::string reason) {
    out_.skipped_because = std::move(reason);
    return false;
  }
  template <class T>
  T assume(std::string_view column, T value) {
    out_.assumed.push_back(fmt::format("{} = {}", column, value));
    return value;
  }
  template <class T>
  T or_assume(const std::optional<T>& stated, std::string_view column, T value) {
    return stated ? *stated : assume(column, value);
  }

  bool model() {
    std::vector<std::string_view> blank;
    const auto need = [&](const std::optional<int64_t>& value, std::string_view column) {
      if (!value) blank.push_back(column);
      return value.value_or(0);
    };
    ModelArchitecture& m = s_.model;
    const ModelArchitecture* known = parts_.model(row_.model);
    const auto size = [&](const std::optional<int64_t>& value, std::string_view column,
                          int64_t ModelArchitecture::*field) {
      if (value || known == nullptr) return need(value, column);
      return assume(column, known->*field);
    };
    m.name = row_.model;
    m.layers = size(row_.layers, "layers", &ModelArchitecture::layers);
    m.hidden = size(row_.hidden, "hidden", &ModelArchitecture::hidden);
    m.ffn = size(row_.ffn, "ffn", &ModelArchitecture::ffn);
    m.heads = size(row_.heads, "heads", &ModelArchitecture::heads);
    m.vocab = size(row_.vocab, "vocab", &ModelArchitecture::vocab);
    s_.training.sequence_length = need(row_.seq_len, "seq_len");
    s_.gpus = need(row_.num_gpus, "num_gpus");
    s_.training.global_batch = need(row_.global_batch, "global_batch");
    if (!blank.empty()) {
      std::string names;
      for (const std::string_view name : blank) {
        names += (names.empty() ? "" : ", ") + std::string(name);
      }
      return skip("not stated: " + names);
    }
    experts(known);
    if (row_.ep.value_or(1) > 1 && !m.is_moe()) {
      return skip("a mixture of experts: neither a column nor the catalogue describes the experts");
    }
    m.kv_heads = or_assume(row_.kv_heads, "kv_heads", known != nullptr ? known->kv_heads : m.heads);
    m.gated_mlp = or_assume(row_.mlp_gated, "mlp_gated", known == nullptr || known->gated_mlp);
    if (known == nullptr && !row_.head_dim && m.hidden % m.heads != 0) {
      return skip("heads does not divide hidden");
    }
    m.head_dim =
        or_assume(row_.head_dim, "head_dim", known != nullptr ? known->head_dim : m.hidden / m.heads);
    m.tied_embeddings = row_.billion_parameters && tied_by_count(m, 1e9 * *row_.billion_parameters);
    return true;
  }

  // Of the row, or of the catalogue's model of that name.
  void experts(const ModelArchitecture* known) {
    ModelArchitecture& m = s_.model;
    if (row_.experts) {
      m.experts = *row_.experts;
      m.experts_per_token = or_assume(row_.experts_per_token, "experts_per_token", int64_t{2});
      m.shared_experts = row_.shared_experts.value_or(0);
      m.expert_ffn = row_.expert_ffn.value_or(0);
      return;
    }
    if (known == nullptr || !known->is_moe()) return;
    assume("experts", known->experts);
    m.experts = known->experts;
    m.experts_per_token = known->experts_per_token;
    m.shared_experts = known->shared_experts;
    m.expert_ffn = known->expert_ffn;
    m.first_dense_layers = std::min(known->first_dense_layers, m.layers - 1);
    m.expert_groups = known->expert_groups;
    m.expert_groups_per_token = known->expert_groups_per_token;
    m.expert_biases = known->expert_biases;
    m.clamped_activation = known->clamped_activation;
    m.alternate_window = known->alternate_window;
    m.kv_lora_rank = known->kv_lora_rank;
    m.q_lora_rank = known->q_lora_rank;
    m.rope_head_dim = known->rope_head_dim;
    m.value_head_dim = known->value_head_dim;
  }

  bool software() {
    words_ = words_of(row_);
    std::string name = row_.software;
    const bool by_row = words_.fp8_by_row && words_.compiled;
    const std::string variant = !words_.compiled ? "-eager" : by_row ? "-rowwise" : "";
    if (!variant.empty() && parts_.software(name + variant) != nullptr) name = assume("software", name + variant);
    const SoftwareStack* stack = parts_.software(name);
    if (stack == nullptr) {
      return skip(name.empty() ? "software is not stated"
                               : "no record of the software stack " + name);
    }
    s_.software = *stack;
    std::vector<std::string> sets = sets_of_words();
    sets.insert(sets.end(), row_.software_sets.begin(), row_.software_sets.end());
    if (!sets.empty() || !software_sets_.empty()) {
      sets.insert(sets.end(), parts_.software_sets().begin(), parts_.software_sets().end());
      sets.insert(sets.end(), software_sets_.begin(), software_sets_.end());
      s_.software = load_software(name, sets);
    }
    if (words_.no_tp_overlap) s_.software.tp_overlap = TpOverlap::kNone;
    if (words_.no_dp_overlap) s_.software.dp_overlap = false;
    return true;
  }

  // Fields that the row's words set: the compiler's asynchronous TP splits products in chunks by
  // rank, in both passes.
  std::vector<std::string> sets_of_words() const {
    std::vector<std::string> sets;
    if (words_.async_tp && row_.tp.value_or(1) > 1) {
      sets = {"tp_overlap=CHUNKED", fmt::format("tp_overlap_chunks={}", *row_.tp),
              "tp_backward_overlap=true"};
    }
    return sets;
  }

  bool machine() {
    const GpuRow* gpu = find_gpu(row_.gpu);
    if (gpu == nullptr) {
      return skip(row_.gpu.empty() ? "gpu is not stated" : "no profile of the GPU " + row_.gpu);
    }
    s_.profile = parts_.profile(std::string(gpu->profile));
    device(*gpu);
    ClusterSpec& c = s_.cluster;
    c.name = "of the row";
    c.topology = "rail-optimized";
    c.gpus_per_host = or_assume(row_.gpus_per_node, "gpus_per_node", int64_t{8});
    if (s_.gpus < c.gpus_per_host) c.gpus_per_host = s_.gpus;
    if (s_.gpus % c.gpus_per_host != 0) {
      return skip(
          fmt::format("{} GPUs are no whole number of nodes of {}", s_.gpus, c.gpus_per_host));
    }
    const double gigabits = gigabits_per_gpu(row_.interconnect, c.gpus_per_host).value_or(gpu->nic);
    c.gpus_per_host = in_one_nvlink_domain(c.gpus_per_host, gpu->nvlink_domain);
    c.gpus_per_tor = 32;
    c.gpus_per_pod =
        c.gpus_per_tor * c.gpus_per_host *
        ((s_.gpus + c.gpus_per_tor * c.gpus_per_host - 1) / (c.gpus_per_tor * c.gpus_per_host));
    c.gpus = s_.gpus;
    c.tor_uplinks = c.gpus_per_tor;
    c.pod_oversubscription = 1;
    c.routing = "adaptive";
    c.nvlink = bytes_per_second(gpu->nvlink * share_of_links(*gpu) * 1e9);
    c.nic = bytes_per_second(gigabits * 1e9 / 8);
    const auto rate = [](const std::optional<double>& gigabytes) {
      return bytes_per_second(gigabytes.value_or(0) * 1e9);
    };
    s_.measured_network = {.all_reduce = rate(row_.allreduce_gigabytes_per_second),
                           .all_gather = rate(row_.allgather_gigabytes_per_second),
                           .reduce_scatter = rate(row_.reducescatter_gigabytes_per_second)};
    stalled_hosts();
    return true;
  }

  // Shown by the job's own measurement, unless it is said how often they stall.
  void stalled_hosts() {
    constexpr std::string_view kField = "host_stall_probability";
    if (is_set(parts_.software_sets(), kField) || is_set(row_.software_sets, kField) ||
        is_set(software_sets_, kField)) {
      return;
    }
    const ClusterSpec& c = s_.cluster;
    const HostStalls stalls = stalls_of_measured(s_.measured_network, s_.gpus, c.gpus_per_host,
                                                 c.nic * c.gpus_per_host);
    if (stalls.probability > 0) {
      s_.software.host_stalls.probability = assume(kField, stalls.probability);
    }
  }

  // Of a GPU's NVLinks those to the others of its tensor-parallel group, or of its node: boards of four GPUs have no NVSwitch
  // (NVIDIA's platforms with one: HGX 8-GPU baseboards), but as many links between each pair.
  double share_of_links(const GpuRow& gpu) const {
    if (gpu.without_switch == 0 || row_.gpus_per_node != gpu.without_switch) return 1;
    const int64_t tp = row_.tp.value_or(1);
    const int64_t joined = tp > 1 ? tp : s_.gpus;
    if (joined >= gpu.without_switch) return 1;
    return static_cast<double>(joined - 1) / static_cast<double>(gpu.without_switch - 1);
  }

  // The most whole nodes that share the job evenly and that NVLink joins, in GPUs.
  int64_t in_one_nvlink_domain(int64_t gpus_per_node, int64_t domain) const {
    int64_t most = gpus_per_node;
    for (int64_t gpus = gpus_per_node; gpus <= std::min(domain, s_.gpus); gpus += gpus_per_node) {
      if (s_.gpus % gpus == 0) most = gpus;
    }
    return most;
  }

  // A part with other memory or another power limit than the profile's.
  void device(const GpuRow& gpu) {
    DeviceProfile& p = s_.profile;
    const double usual = static_cast<double>(p.hbm_bandwidth.bytes_per_second()) / 1e9;
    const double hbm = row_.hbm_gigabytes_per_second.value_or(gpu.hbm > 0 ? gpu.hbm : usual);
    if (hbm != usual) {
      set_memory_rate(p, hbm / usual);
      p.hbm_bandwidth = bytes_per_second(hbm * 1e9);
    }
    if (gpu.gigabytes > 0) p.hbm = Bytes(static_cast<int64_t>(gpu.gigabytes * 1e9));
    if (gpu.clock != 1) s_.software.clock_factor *= assume("clock over the profile's", gpu.clock);
    if (row_.gpu_power_watts) {
      const PowerCap cap{.usual_watts = p.board_watts,
                         .watts = *row_.gpu_power_watts,
                         .clock_factor = clock_factor_under_cap({.power_limit_w = p.board_watts}, *row_.gpu_power_watts)};
      s_.software.clock_factor *= cap.clock_factor;
      p.board_watts = cap.watts;
      out_.power_cap = cap;
    }
  }

  void sharding() {
    if (words_.sharding) {
      s_.plan.shard = *words_.sharding;
      // torchtitan keeps parameters gathered under a pipeline and reduces gradients once a step.
      if (is_fsdp2() && row_.pp.value_or(1) > 1 && s_.plan.shard == Sharding::kZero3) s_.plan.shard = Sharding::kFsdpKeep;
      return;
    }
    const bool fsdp = row_.software.starts_with("torch-fsdp") || is_xla();
    s_.plan.shard = fsdp ? Sharding::kZero3 : Sharding::kZero1;
    assume("fsdp_zero", fsdp ? "ZeRO-3" : "ZeRO-1");
  }

  bool plan() {
    ParallelPlan& p = s_.plan;
    sharding();
    ModelRanks ranks;
    if (!row_.tp && !row_.pp && p.shard != Sharding::kZero3) ranks = assumed_model_ranks(s_);
    p.tp = or_assume(row_.tp, "tp", ranks.tp);
    p.cp = or_assume(row_.cp, "cp", int64_t{1});
    // Megatron-LM passes keys and values round a ring unless told otherwise (NVIDIA/Megatron-LM
    // pull request 1160: the default of cp_comm_type is p2p).
    if (row_.software.starts_with("megatron")) p.context = ContextParallel::kRing;
    p.pp = or_assume(row_.pp, "pp", ranks.pp);
    // PyTorch's context_parallel puts ring attention in the place of the attention it finds (_attention.py).
    if (p.cp > 1 && is_fsdp2()) p.context = ContextParallel::kRing;
    const int64_t replica = p.tp * p.cp * p.pp;
    if (s_.gpus % replica != 0) {
      return skip(fmt::format("tp * cp * pp ({}) does not divide num_gpus", replica));
    }
    p.dp = s_.gpus / replica;
    if (row_.dp && *row_.dp != p.dp) assume("dp", p.dp);
    p.ep = row_.ep.value_or(1);
    if (has_replicas_before_stages()) p.order = kReplicasBeforeStages;
    expert_ranks();
    p.micro_batch = row_.micro_batch ? *row_.micro_batch : assume("micro_batch", usual_micro_batch());
    const bool usual = s_.software.sequence_parallel || s_.model.is_moe();
    p.sequence_parallel = p.tp > 1 && or_assume(row_.sp, "sp", usual);
    p.dp_shard = words_.shard_ranks == RowWords::kUnstated
                     ? assume("dp_shard", assumed_shard_ranks(s_))
                     : words_.shard_ranks;
    if (s_.model.vocab % p.tp != 0) {
      s_.model.vocab =
          assume("vocab", (s_.model.vocab + 128 * p.tp - 1) / (128 * p.tp) * 128 * p.tp);
    }
    return true;
  }

  bool is_xla() const { return row_.software == "jax-xla" || row_.software == "paxml"; }
  bool has_replicas_before_stages() const {
    return row_.software.starts_with("megatron") || row_.software == "deepspeed";
  }
  bool is_fsdp2() const { return row_.software.starts_with("torch-fsdp2"); }

  // torchtitan made as many micro-batches of a pipeline's batch as it has stages, interleaved or not, until January 2025
  // (pytorch/torchtitan pull request 781).
  int64_t usual_micro_batch() const {
    const ParallelPlan& p = s_.plan;
    if (row_.software == "megatron-2021") {
      // Its authors find 4 best without a pipeline and 2 with one of eight stages
      // (arXiv:2104.04473, figures 8 and 16). Interleaving takes whole rounds of the stages.
      const int64_t best = p.pp > 1 ? 2 : 4;
      return s_.training.global_batch % (p.dp * best * p.pp) == 0 ? best : 1;
    }
    if (!is_fsdp2() || p.pp == 1) return 1;
    const int64_t together = p.dp * p.pp;
    return s_.training.global_batch % together == 0 ? s_.training.global_batch / together : 1;
  }

  // Whole experts where Megatron Core would fold them over the tensor ranks: more of them than a
  // rank's tensor group can share out over data-parallel ranks, or experts too narrow to split.
  void expert_ranks() {
    ParallelPlan& p = s_.plan;
    if (!s_.model.is_moe()) return;
    // As in Megatron-LM, experts are shared out over the nearest replicas.
    p.order = kReplicasBeforeStages;
    if (p.tp == 1) return;
    constexpr int64_t kNarrowest = 4096;  // DeepSeek-V3 and Qwen3 run whole, Mixtral and Grok split
    const bool fits = p.ep % p.tp == 0 && p.dp % (p.ep / p.tp) == 0;
    if (fits && (p.dp % p.ep != 0 || s_.model.expert_width() < kNarrowest)) {
      p.expert_tp = assume("expert_tp", int64_t{1});
    }
  }

  void training() {
    Training& t = s_.training;
    t.precision = words_.precision ? *words_.precision : DataType::kBf16;
    if (!words_.precision) assume("precision", "bf16");
    if (words_.recompute) {
      t.recompute = *words_.recompute;
      t.recompute_fraction = words_.recompute_fraction;
      t.recompute_modules = words_.recompute_modules;
    } else if (is_xla()) {
      t.recompute = Recompute::kSelective;
      assume("recompute", "core attention");
    } else {
      assume("recompute", "none");
    }
    if (row_.expert_capacity) t.expert_capacity_factor = *row_.expert_capacity;
    if (!row_.attention_kernel.empty()) s_.software.attention_kernel = row_.attention_kernel;
    if (row_.attention_kernel.empty() ||
        !s_.profile.attention_kernel(s_.software.attention_kernel)) {
      if (!s_.profile.attention_kernel(s_.software.attention_kernel)) {
        s_.software.attention_kernel = "fa2";
      }
      assume("attention_kernel", s_.software.attention_kernel);
    }
  }

  // The rules between fields that scenario files keep.
  void check() {
    SpecReport report(row_.id);
    std::vector<std::string> warnings;
    check_relations(s_, &report, &warnings);
    try {
      report.throw_if_any();
    } catch (const SpecError& error) {
      const Fault& first = error.faults().front();
      skip(fmt::format("{}: {}", first.field, first.problem));
    }
  }

  const RunRow& row_;
  const RowParts& parts_;
  const std::vector<std::string>& software_sets_;
  RowWords words_;
  RowScenario out_;
  Scenario& s_ = out_.scenario;
};

}  // namespace

RowParts::RowParts(const std::vector<std::string>& sets) {
  constexpr std::string_view kPrefix = "software.";
  Faults faults;
  for (const std::string& set : sets) {
    if (set.starts_with(kPrefix)) {
      software_sets_.push_back(set.substr(kPrefix.size()));
    } else {
      faults.add(
          {.field = "--set",
           .problem = "\"" + set + "\" is of a scenario; rows say everything but the software",
           .allowed = "software.FIELD=VALUE"});
    }
  }
  faults.throw_if_any();
  for (const std::string& name : catalog_names(CatalogKind::kSoftware)) {
    software_.emplace(name, load_software(name, software_sets_));
  }
  for (const std::string& name : catalog_names(CatalogKind::kModels)) {
    models_.emplace(letters_and_digits(name), load_model(name));
  }
  for (const GpuRow& gpu : table_gpus()) {
    const std::string profile(gpu.profile);
    if (!profiles_.contains(profile)) profiles_.emplace(profile, load_profile(profile));
  }
}

const SoftwareStack* RowParts::software(const std::string& name) const {
  const auto found = software_.find(name);
  return found == software_.end() ? nullptr : &found->second;
}

const ModelArchitecture* RowParts::model(std::string_view name) const {
  // "Qwen3_30B_a3B" and "Grok1-314B-proxy-L2" begin with the catalogue's "qwen3-30b-a3b" and
  // "grok-1".
  const std::string letters = letters_and_digits(name);
  const ModelArchitecture* longest = nullptr;
  size_t length = 0;
  for (const auto& [known, model] : models_) {
    if (!letters.starts_with(known) || known.size() <= length) continue;
    length = known.size();
    longest = &model;
  }
  return longest;
}

RowScenario scenario_of_row(const RunRow& row, const RowParts& parts,
                            const std::vector<std::string>& software_sets) {
  return RowReading(row, parts, software_sets).read();
}

bool is_set(const std::vector<std::string>& sets, std::string_view field) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    return set.starts_with(fmt::format("{}=", field));
  });
}

}  // namespace herdsim

#include "tools/scenario/check_relations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/models/data_type_names.h"
#include "tools/scenario/known_names.h"
#include "workloads/schedules/schedule.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

// Beyond this a parameter count or a byte count of the whole job could overflow 64 bits.
constexpr double kMaxParameters = 1e15;
constexpr double kMaxElements = 1e17;
constexpr double kMaxTokens = 1e15;
// Each takes a kilobyte in the simulator, and some microseconds.
constexpr double kMaxPasses = 2e7;

std::string divisors_of(int64_t n, int64_t limit) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(n, limit) && divisors.size() < 24; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return fmt::format("{}", fmt::join(divisors, ", "));
}

class RelationCheck {
 public:
  RelationCheck(const Scenario& scenario, SpecReport* report, std::vector<std::string>* warnings)
      : s_(scenario), p_(scenario.plan), report_(report), warnings_(warnings) {}

  void run() {
    model_size();
    experts();
    latent_attention();
    tensor_parallel();
    sharing_of_state();
    context_parallel();
    ranks();
    sequence();
    recomputation();
    batch_and_schedule();
    degraded();
    names();
    storage_traffic();
    attention_kernel();
    precision();
    weeks();
  }

 private:
  bool sound(std::initializer_list<std::string_view> paths) const { return report_->sound(paths); }
  void fault(std::string_view path, std::string problem, std::string allowed = "") {
    report_->add(path, std::move(problem), std::move(allowed));
  }
  void warn(std::string text) { warnings_->push_back(std::move(text)); }

  void model_size() {
    const ModelArchitecture& m = s_.model;
    if (!sound({"model.layers", "model.hidden", "model.ffn", "model.heads", "model.kv_heads",
                "model.head_dim", "model.vocab", "model.experts", "model.shared_experts"})) {
      return;
    }
    if (m.heads % m.kv_heads != 0) {
      fault("model.kv_heads", fmt::format("{} does not divide heads ({})", m.kv_heads, m.heads),
            divisors_of(m.heads, m.heads));
    }
    // In doubles: the integers of ModelArchitecture are only safe below this bound.
    const auto d = [](int64_t n) { return static_cast<double>(n); };
    const double attention = d(m.hidden) * d(m.head_dim) * 2 * (d(m.heads) + d(m.kv_heads));
    const double latents = (d(m.q_lora_rank) + d(m.kv_lora_rank) + d(m.rope_head_dim)) *
                           (d(m.hidden) + 2 * d(m.heads) * (d(m.head_dim) + d(m.rope_head_dim)));
    const double width = std::max(d(m.ffn), d(m.expert_ffn));
    const double expert = 3 * d(m.hidden) * width;
    const double layer =
        attention + latents + expert * std::max(1.0, d(m.experts) + d(m.shared_experts));
    const double parameters = d(m.layers) * layer + 2 * d(m.vocab) * d(m.hidden);
    if (parameters > kMaxParameters) {
      fault("model", fmt::format("has {:.2g} parameters", parameters),
            fmt::format("up to {:.0e}", kMaxParameters));
    }
  }

  void experts() {
    const ModelArchitecture& m = s_.model;
    if (!sound({"model.experts", "model.experts_per_token", "model.first_dense_layers",
                "model.expert_ffn", "parallel.ep", "parallel.expert_tp", "parallel.dp",
                "parallel.tp"})) {
      return;
    }
    if (!m.is_moe()) {
      if (p_.ep > 1) fault("parallel.ep", "the model has no experts to share out", "1");
      if (p_.expert_ranks() != p_.tp) {
        fault("parallel.expert_tp", "the model has no experts to share", fmt::format("0 or {}", p_.tp));
      }
      return;
    }
    if (m.experts_per_token < 1 || m.experts_per_token > m.experts) {
      fault("model.experts_per_token",
            fmt::format("{} of {} experts", m.experts_per_token, m.experts),
            fmt::format("1 to {}", m.experts));
    }
    if (m.first_dense_layers >= m.layers) {
      fault(
          "model.first_dense_layers",
          fmt::format("{} of {} layers leave none for the experts", m.first_dense_layers, m.layers),
          fmt::format("0 to {}", m.layers - 1));
    }
    expert_groups();
    expert_ranks();
    if (s_.training.expert_imbalance > static_cast<double>(p_.ep)) {
      fault("training.expert_imbalance",
            fmt::format("{} times the mean is more than all tokens of {} ranks",
                        s_.training.expert_imbalance, p_.ep),
            fmt::format("1 to {}", p_.ep));
    }
    if (p_.is_hybrid()) {
      fault("parallel.dp_shard", "replicas of shards are not modelled beside experts", "0");
    }
  }

  void expert_groups() {
    const ModelArchitecture& m = s_.model;
    if (m.expert_groups == 0 && m.expert_groups_per_token == 0) return;
    if (m.expert_groups == 0 || m.experts % m.expert_groups != 0) {
      fault("model.expert_groups",
            fmt::format("{} does not divide experts ({})", m.expert_groups, m.experts),
            divisors_of(m.experts, m.experts));
      return;
    }
    const int64_t open = m.expert_groups_per_token;
    if (open < 1 || open > m.expert_groups ||
        open * (m.experts / m.expert_groups) < m.experts_per_token) {
      const int64_t a_group = m.experts / m.expert_groups;
      fault("model.expert_groups_per_token",
            fmt::format("{} of {} groups for {} experts a token", open, m.expert_groups,
                        m.experts_per_token),
            fmt::format("{} to {}", (m.experts_per_token + a_group - 1) / a_group,
                        m.expert_groups));
    }
  }

  void expert_ranks() {
    const ModelArchitecture& m = s_.model;
    if (m.experts % p_.ep != 0) {
      fault("parallel.ep", fmt::format("{} does not divide experts ({})", p_.ep, m.experts),
            divisors_of(m.experts, p_.dp));
    }
    if (p_.expert_ranks() != p_.tp && p_.expert_ranks() != 1) {
      fault("parallel.expert_tp", fmt::format("{} is neither tp ({}) nor 1", p_.expert_tp, p_.tp),
            fmt::format("0, 1 or {}", p_.tp));
      return;
    }
    if (p_.experts_span_tp() && p_.ep % p_.tp != 0) {
      fault("parallel.ep",
            fmt::format("{} is not a multiple of tp ({}), over which whole experts are shared out",
                        p_.ep, p_.tp),
            fmt::format("a multiple of {}", p_.tp));
      return;
    }
    if (p_.dp % p_.expert_dp() != 0) {
      fault("parallel.ep",
            p_.experts_span_tp()
                ? fmt::format("ep / tp ({}) does not divide dp ({})", p_.expert_dp(), p_.dp)
                : fmt::format("{} does not divide dp ({})", p_.ep, p_.dp),
            divisors_of(p_.dp, p_.dp));
    }
    if (m.expert_width() % p_.expert_ranks() != 0) {
      fault("parallel.tp",
            fmt::format("{} does not divide model.expert_ffn ({})", p_.expert_ranks(),
                        m.expert_width()),
            "expert_tp 1, or a divisor of it");
    }
    // Megatron-LM's rule: without it every tensor rank would send every token.
    if (p_.tp > 1 && !p_.sequence_parallel) {
      fault("parallel.sequence_parallel", "is off, with experts and tp above 1", "true");
    }
  }

  void latent_attention() {
    const ModelArchitecture& m = s_.model;
    if (!sound({"model.kv_lora_rank", "model.q_lora_rank", "model.rope_head_dim",
                "model.value_head_dim", "model.kv_heads"})) {
      return;
    }
    if (m.is_latent()) {
      if (m.kv_heads != m.heads) {
        fault("model.kv_heads",
              fmt::format("{} of {} heads: latent attention makes keys for every head", m.kv_heads,
                          m.heads),
              fmt::format("{}", m.heads));
      }
      return;
    }
    for (const auto& [path, value] : {std::pair("model.q_lora_rank", m.q_lora_rank),
                                      std::pair("model.rope_head_dim", m.rope_head_dim),
                                      std::pair("model.value_head_dim", m.value_head_dim)}) {
      if (value > 0) {
        fault(path, "is of latent attention, and kv_lora_rank is 0", "0, or a kv_lora_rank");
      }
    }
  }

  void sharing_of_state() {
    if (!sound({"parallel.dp_shard", "parallel.dp"}) || p_.dp_shard == 0) return;
    if (p_.dp % p_.dp_shard != 0) {
      fault("parallel.dp_shard", fmt::format("{} does not divide dp ({})", p_.dp_shard, p_.dp),
            divisors_of(p_.dp, p_.dp));
    }
    if (p_.shard == Sharding::kNone && p_.is_hybrid()) {
      fault("parallel.dp_shard", "shares out nothing: parallel.shard is NONE", "0");
    }
  }

  void context_parallel() {
    if (p_.context != ContextParallel::kAllToAll || p_.cp == 1 ||
        !sound({"parallel.context", "parallel.cp", "parallel.tp", "model.heads"})) {
      return;
    }
    if (s_.model.heads % (p_.tp * p_.cp) != 0) {
      fault("parallel.cp",
            fmt::format("tp * cp ({}) does not divide model.heads ({}), which an exchange of heads "
                        "shares out",
                        p_.tp * p_.cp, s_.model.heads),
            divisors_of(s_.model.heads / p_.tp, p_.cp * 4));
    }
  }

  void tensor_parallel() {
    const ModelArchitecture& m = s_.model;
    const auto divides = [&](std::string_view path, int64_t value) {
      if (!sound({path, "parallel.tp"}) || value % p_.tp == 0) return;
      fault(
          "parallel.tp", fmt::format("{} does not divide {} ({})", p_.tp, path, value),
          divisors_of(std::gcd(std::gcd(m.heads, m.ffn), std::gcd(m.hidden, m.vocab)), p_.tp * 4));
    };
    divides("model.heads", m.heads);
    divides("model.ffn", m.ffn);
    divides("model.hidden", m.hidden);
    divides("model.vocab", m.vocab);
    // With more ranks than key heads, each key head is on several ranks.
    if (sound({"model.kv_heads", "parallel.tp"}) && m.kv_heads % p_.tp != 0 &&
        p_.tp % m.kv_heads != 0) {
      fault("parallel.tp",
            fmt::format("{} neither divides model.kv_heads ({}) nor is a multiple of it", p_.tp,
                        m.kv_heads));
    }
    if (sound({"parallel.tp", "cluster.gpus_per_host"}) && p_.tp > s_.cluster.gpus_per_host) {
      warn(fmt::format(
          "parallel.tp: {} reaches beyond a host of {} GPUs: every layer waits for the network",
          p_.tp, s_.cluster.gpus_per_host));
    }
  }

  void ranks() {
    if (!sound({"parallel.tp", "parallel.cp", "parallel.pp", "parallel.dp", "gpus"})) return;
    // Each factor is at most 2^22, so the product of four fits a double exactly enough and an
    // integer not.
    const double replica =
        static_cast<double>(p_.tp) * static_cast<double>(p_.cp) * static_cast<double>(p_.pp);
    const double product = replica * static_cast<double>(p_.dp);
    if (product != static_cast<double>(s_.gpus)) {
      const double fits = static_cast<double>(s_.gpus) / replica;
      const bool whole = fits >= 1 && fits == std::floor(fits);
      fault("parallel",
            fmt::format("tp * cp * pp * dp = {} * {} * {} * {} = {:.0f} is not gpus = {}", p_.tp,
                        p_.cp, p_.pp, p_.dp, product, s_.gpus),
            whole ? fmt::format("dp: {:.0f}", fits)
                  : fmt::format("a tp * cp * pp ({:.0f}) that divides gpus", replica));
    }
    if (sound({"cluster.gpus"}) && s_.gpus > s_.cluster.gpus) {
      fault("gpus", fmt::format("{} GPUs are more than the cluster has", s_.gpus),
            fmt::format("1 to {}", s_.cluster.gpus));
    } else if (sound({"cluster.gpus", "cluster.gpus_per_host", "cluster.unavailable_hosts",
                      "cluster.unavailable_fraction"}) &&
               s_.gpus > usable_gpus(s_.cluster)) {
      fault("gpus",
            fmt::format("{} GPUs are more than the {} on available hosts", s_.gpus,
                        usable_gpus(s_.cluster)),
            fmt::format("1 to {}", usable_gpus(s_.cluster)));
    }
    const auto mapped = static_cast<int64_t>(s_.cluster.rank_map.size());
    if (s_.cluster.placement == PlacementKind::kRankMap && sound({"cluster.rank_map"}) &&
        mapped < s_.gpus) {
      fault("cluster.rank_map", fmt::format("{} GPUs for {} ranks", mapped, s_.gpus),
            "one GPU a rank");
    }
  }

  void sequence() {
    if (!sound({"parallel.cp", "training.sequence_length"})) return;
    const int64_t length = s_.training.sequence_length;
    // Rank i of cp takes chunks i and 2 cp - 1 - i of 2 cp, so that all see as much of the causal
    // triangle.
    if (p_.cp > 1 && length % (2 * p_.cp) != 0) {
      fault("training.sequence_length",
            fmt::format("{} is not divisible by 2 * cp ({})", length, 2 * p_.cp),
            fmt::format(
                "a multiple of {}: causal attention is balanced over cp ranks in 2 * cp chunks",
                2 * p_.cp));
    } else if (sound({"parallel.tp"}) && p_.sequence_parallel && length / p_.cp % p_.tp != 0) {
      fault(
          "training.sequence_length",
          fmt::format("{} / cp is not divisible by tp ({}), over which sequence_parallel splits it",
                      length, p_.tp),
          fmt::format("a multiple of {}", p_.cp * p_.tp));
    }
    step_size();
  }

  // Amounts that later code multiplies in 64 bits, and a number of passes that memory holds.
  void step_size() {
    if (!sound({"training.sequence_length", "training.global_batch", "parallel.micro_batch",
                "parallel.dp", "parallel.pp", "parallel.virtual_stages", "model.layers"})) {
      return;
    }
    const auto d = [](int64_t n) { return static_cast<double>(n); };
    const ModelArchitecture& m = s_.model;
    const double widest = std::max(
        {d(m.hidden), d(m.ffn), d(m.vocab), d(m.head_dim) * (d(m.heads) + 2 * d(m.kv_heads))});
    const double tokens = d(p_.micro_batch) * d(s_.training.sequence_length);
    if (tokens * widest > kMaxElements) {
      fault("parallel.micro_batch",
            fmt::format("an activation of {:.1g} elements", tokens * widest),
            fmt::format("micro_batch * sequence_length * the model's widest layer up to {:.0e}",
                        kMaxElements));
    }
    if (d(s_.training.sequence_length) * d(s_.training.global_batch) > kMaxTokens) {
      fault("training.global_batch", "too many tokens a step",
            fmt::format("sequence_length * global_batch up to {:.0e}", kMaxTokens));
    }
    const double depth = std::max(d(m.layers), d(p_.pp) * d(p_.virtual_stages));
    const double passes = d(s_.training.global_batch) / (d(p_.dp) * d(p_.micro_batch)) * depth;
    if (passes > kMaxPasses) {
      fault("training.global_batch",
            fmt::format("{:.1g} passes of a micro-batch through a layer or model chunk a step",
                        passes),
            fmt::format("global_batch / (dp * micro_batch) * layers, or pp * virtual_stages, up to {:.0e}",
                        kMaxPasses));
    }
  }

  void recomputation() {
    const Training& t = s_.training;
    if (t.recompute_modules.empty() ||
        !sound({"training.recompute", "training.recompute_modules"})) {
      return;
    }
    if (t.recompute != Recompute::kSelective) {
      fault("training.recompute_modules", "say what selective recomputation makes again",
            "recompute: SELECTIVE beside them, or none of them");
    }
    const auto needs = [&](RecomputeModule module, bool has, std::string_view what) {
      if (t.selects(module) && !has) {
        fault("training.recompute_modules", fmt::format("the model has no {}", what));
      }
    };
    needs(RecomputeModule::kMlaUpProjection, s_.model.is_latent(), "latent attention");
    needs(RecomputeModule::kSharedExperts, s_.model.shared_experts > 0, "shared experts");
    needs(RecomputeModule::kExperts, s_.model.is_moe(), "experts");
    needs(RecomputeModule::kMlp, s_.model.dense_layers() > 0, "layer without experts");
  }

  void batch_and_schedule() {
    const Training& t = s_.training;
    const ScheduleRow* row = find_schedule(t.schedule);
    if (row == nullptr) {
      const std::vector<std::string> names = schedule_names();
      report_->add("training.schedule", fmt::format("there is no schedule \"{}\"", t.schedule),
                   fmt::format("{}", fmt::join(names, ", ")), nearest_name(t.schedule, names));
    }
    if (!sound({"parallel.dp", "parallel.micro_batch", "training.global_batch"})) return;
    const int64_t together = p_.dp * p_.micro_batch;
    if (t.global_batch % together != 0) {
      fault("training.global_batch",
            fmt::format("{} is not divisible by dp * micro_batch ({} * {} = {})", t.global_batch,
                        p_.dp, p_.micro_batch, together),
            fmt::format("a multiple of {}, such as {}", together,
                        std::max<int64_t>(1, t.global_batch / together) * together));
      return;
    }
    if (row == nullptr ||
        !sound({"parallel.pp", "parallel.virtual_stages", "training.consecutive_micro_batches"}))
      return;
    const ScheduleShape shape{.stages = p_.pp,
                              .micro_batches = t.global_batch / together,
                              .virtual_stages = p_.virtual_stages,
                              .consecutive_micro_batches = t.consecutive_micro_batches};
    Faults of_row;
    row->validate(shape, of_row);
    if (of_row.empty() && sound({"model.layers", "parallel.layers_per_chunk"})) {
      validate_stage_layout(s_.model, p_, *row, of_row);
    }
    add_all(of_row);
  }

  void add_all(Faults& faults) {
    for (Fault& fault : faults.list())
      report_->add(fault.field, fault.problem, fault.allowed, fault.nearest);
  }

  void degraded() {
    for (size_t i = 0; i < s_.cluster.degraded.size(); ++i) {
      const std::string path = fmt::format("cluster.degraded.{}.gpu", i);
      if (!sound({path, "gpus"}) || s_.cluster.degraded[i].gpu < s_.gpus) continue;
      fault(path,
            fmt::format("there is no rank {} in a job of {} GPUs", s_.cluster.degraded[i].gpu,
                        s_.gpus),
            fmt::format("0 to {}", s_.gpus - 1));
    }
  }

  // Reliability, checkpoint and recovery by the rules of those who simulate them.
  void weeks() {
    CampaignRequest request{.machine = {.gpus = s_.gpus,
                                        .gpus_per_host = s_.cluster.gpus_per_host,
                                        .gpus_per_tor = s_.cluster.gpus_per_tor,
                                        .gpus_per_pod = s_.cluster.gpus_per_pod},
                            .reliability = s_.reliability,
                            .checkpoint = s_.checkpoint,
                            .recovery = s_.recovery};
    // Follows from the model once that has been checked.
    if (request.checkpoint.bytes == Bytes(0)) request.checkpoint.bytes = Bytes(1);
    Faults faults;
    append_faults(request, faults);
    for (Fault& fault : faults.list()) {
      fault.field = path_with_dots(fault.field);
      if (sound({fault.field}))
        report_->add(fault.field, fault.problem, fault.allowed, fault.nearest);
    }
  }

  void names() {
    name("cluster.routing", s_.cluster.routing, NameKind::kRouting);
    name("cluster.buffers", s_.cluster.buffers, NameKind::kBuffers);
  }
  void name(std::string_view path, const std::string& value, NameKind kind) {
    const std::vector<std::string> names = known_names(kind);
    if (value.empty() || !sound({path}) ||
        std::find(names.begin(), names.end(), value) != names.end())
      return;
    report_->add(path, fmt::format("there is no \"{}\"", value),
                 fmt::format("{}", fmt::join(names, ", ")), nearest_name(value, names));
  }

  // Flows need servers to go to.
  void storage_traffic() {
    const OtherTraffic& traffic = s_.other_traffic;
    if (!traffic.has_storage() || !sound({"cluster", "other_traffic", "checkpoint"})) return;
    if (s_.cluster.storage.servers == 0) {
      fault(traffic.saving ? "other_traffic.saving" : "other_traffic.loading",
            "the cluster has no storage servers (cluster.storage_network.servers is 0)", "false");
    }
    constexpr double kMostLoading = 1e6;  // what a step reads stays in 64 bits
    if (traffic.loading && s_.checkpoint.storage.data_loading_gb_per_s > kMostLoading) {
      fault("checkpoint.storage.data_loading_gigabytes_per_second",
            fmt::format("{} beside a step (other_traffic.loading)",
                        s_.checkpoint.storage.data_loading_gb_per_s),
            fmt::format("up to {}", kMostLoading));
    }
    if (traffic.loading && s_.checkpoint.storage.data_loading_gb_per_s == 0) {
      fault("other_traffic.loading", "checkpoint.storage.data_loading_gigabytes_per_second is 0: there is nothing to read",
            "false");
    }
  }

  void attention_kernel() {
    if (!sound({"profile", "software.attention_kernel"}) ||
        s_.profile.attention_kernel(s_.software.attention_kernel)) {
      return;
    }
    std::vector<std::string> names;
    for (const AttentionKernel& kernel : s_.profile.attention) names.push_back(kernel.name);
    report_->add("software.attention_kernel",
                 fmt::format("profile {} has no attention kernel \"{}\"", s_.profile.name,
                             s_.software.attention_kernel),
                 fmt::format("{}", fmt::join(names, ", ")),
                 nearest_name(s_.software.attention_kernel, names));
  }

  // Utilisation is a share of the peak of the type.
  void precision() {
    const DataType asked = s_.training.precision;
    const auto has = [&](DataType type) { return s_.profile.peak_of(type).per_second() > 0; };
    if (!sound({"profile", "training.precision"}) || has(asked)) return;
    std::vector<std::string_view> types;
    for (size_t type = 0; type < kDataTypeNames.size(); ++type) {
      if (has(static_cast<DataType>(type))) types.push_back(kDataTypeNames[type]);
    }
    fault("training.precision",
          fmt::format("profile {} has no peak for {}", s_.profile.name, data_type_name(asked)),
          fmt::format("{}", fmt::join(types, ", ")));
  }

  const Scenario& s_;
  const ParallelPlan& p_;
  SpecReport* report_;
  std::vector<std::string>* warnings_;
};

}  // namespace

void check_cluster(const ClusterSpec& cluster, const std::string& prefix, SpecReport* report) {
  Faults faults;
  append_cluster_faults(cluster, prefix, faults);
  for (Fault& fault : faults.list()) {
    const std::string path = path_with_dots(fault.field);
    if (report->sound({path})) report->add(path, fault.problem, fault.allowed, fault.nearest);
  }
}

void check_relations(const Scenario& scenario, SpecReport* report,
                     std::vector<std::string>* warnings) {
  check_cluster(scenario.cluster, "cluster.", report);
  RelationCheck(scenario, report, warnings).run();
}

}  // namespace herdsim

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/scenario/known_names.h"
#include "tools/scenario/relation_rules.h"
#include "workloads/schedules/schedule.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

// Beyond these a byte count of the whole job could overflow 64 bits.
constexpr double kMaxElements = 1e17;
constexpr double kMaxTokens = 1e15;
// Each takes a kilobyte in the simulator, and some microseconds.
constexpr double kMaxPasses = 2e7;

class PlanRules : RelationRules {
 public:
  using RelationRules::RelationRules;

  void run() {
    tensor_parallel();
    sharing_of_state();
    context_parallel();
    ranks();
    sequence();
    recomputation();
    batch_and_schedule();
  }

 private:
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
    for (const Fault& fault : of_row.list())
      report_->add(fault.field, fault.problem, fault.allowed, fault.nearest);
  }
};

}  // namespace

void check_plan(const Scenario& scenario, SpecReport* report, std::vector<std::string>* warnings) {
  PlanRules(scenario, report, warnings).run();
}

}  // namespace herdsim

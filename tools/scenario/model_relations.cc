#include <fmt/format.h>

#include <algorithm>

#include "tools/scenario/relation_rules.h"

namespace herdsim {
namespace {

// Beyond this a parameter count could overflow 64 bits.
constexpr double kMaxParameters = 1e15;

class ModelRules : RelationRules {
 public:
  using RelationRules::RelationRules;

  void run() {
    model_size();
    experts();
    latent_attention();
  }

 private:
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
};

}  // namespace

void check_model(const Scenario& scenario, SpecReport* report, std::vector<std::string>* warnings) {
  ModelRules(scenario, report, warnings).run();
}

}  // namespace herdsim

#include "workloads/layer_parameters.h"

namespace herdsim {

LayerParameters layer_parameters(const ModelArchitecture& m, const ParallelPlan& plan,
                                 bool with_experts) {
  LayerParameters p;
  p.whole = m.norm_parameters_per_layer();
  if (m.is_latent()) {
    const int64_t down = m.hidden * m.latent_width();
    p.whole += down;
    p.matrices += (m.attention_parameters() - down) / plan.tp;
  } else {
    const int64_t kv = 2 * kv_heads_on_rank(m, plan.tp) * m.head_dim;
    p.matrices += m.hidden * (m.query_width() + m.attention_width()) / plan.tp + m.hidden * kv;
  }
  if (!with_experts) {
    p.matrices += m.ffn_parameters() / plan.tp;
    return p;
  }
  p.whole += m.router_parameters();
  p.matrices += m.shared_experts * m.expert_parameters() / plan.tp;
  p.experts = m.experts / plan.ep * m.expert_parameters() / plan.expert_ranks();
  return p;
}

}  // namespace herdsim

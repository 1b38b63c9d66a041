// A decoder-only transformer as a value. Counts are elements; nothing here knows how it is distributed.
#pragma once

#include <cstdint>
#include <string>

namespace herdsim {

struct ModelArchitecture {
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;  // width of the feed-forward layer (of one expert, where there are experts)
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab = 0;
  bool gated_mlp = true;        // SwiGLU: three matrices; otherwise two
  bool tied_embeddings = false;
  // Mixture of experts; 0 is a dense model.
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  int64_t shared_experts = 0;

  bool is_moe() const { return experts > 0; }
  int64_t query_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t qkv_width() const { return query_width() + 2 * kv_width(); }
  int64_t mlp_matrices() const { return gated_mlp ? 3 : 2; }

  int64_t attention_parameters() const { return hidden * qkv_width() + query_width() * hidden; }
  // Of one expert, or of the dense feed-forward layer.
  int64_t expert_parameters() const { return mlp_matrices() * hidden * ffn; }
  // Of the matrices of one layer, all experts.
  int64_t layer_matrix_parameters() const {
    return attention_parameters() +
           (is_moe() ? (experts + shared_experts) * expert_parameters() + hidden * experts
                     : expert_parameters());
  }
  // Of one layer that a token passes through.
  int64_t active_layer_matrix_parameters() const {
    return attention_parameters() +
           (is_moe() ? (experts_per_token + shared_experts) * expert_parameters() + hidden * experts
                     : expert_parameters());
  }
  int64_t norm_parameters_per_layer() const { return 2 * hidden; }
  int64_t embedding_parameters() const { return vocab * hidden; }
  // Of the whole model, with both norms a layer and the last one.
  int64_t parameters() const {
    return layers * (layer_matrix_parameters() + norm_parameters_per_layer()) + hidden +
           (tied_embeddings ? 1 : 2) * embedding_parameters();
  }
};

}  // namespace herdsim

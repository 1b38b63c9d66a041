// A decoder-only transformer as a value. Counts are elements; nothing here knows how it is
// distributed.
//
// Attention is multi-head, grouped-query (kv_heads < heads) or multi-head latent (kv_lora_rank > 0;
// DeepSeek-V2, arXiv:2405.04434, section 2.1): keys and values come from a latent of kv_lora_rank,
// and each head's query and key carry rope_head_dim channels of rotated position beside head_dim,
// the key's shared by all heads.
//
// A mixture of experts replaces the feed-forward layer of every layer but the first
// `first_dense_layers` by a router, `experts` of which a token visits `experts_per_token`, and
// `shared_experts` that all tokens visit.
#pragma once

#include <cstdint>
#include <string>

namespace herdsim {

struct ModelArchitecture {
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;  // width of the feed-forward layer
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab = 0;
  bool gated_mlp = true;  // SwiGLU: three matrices; otherwise two
  bool tied_embeddings = false;
  // Mixture of experts; 0 is a dense model.
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  int64_t shared_experts = 0;
  int64_t expert_ffn = 0;          // width of one expert; 0: ffn
  int64_t first_dense_layers = 0;  // that have a feed-forward layer instead of experts
  // Experts in this many groups, and of how many of them a token's experts are; 0: of all.
  int64_t expert_groups = 0;
  int64_t expert_groups_per_token = 0;
  // Products of experts have biases; what their activation function reads is clamped first
  // (GPT-OSS).
  bool expert_biases = false;
  bool clamped_activation = false;
  // Every second layer attends to this many tokens before each only; 0: no layer does.
  int64_t alternate_window = 0;
  // Multi-head latent attention; 0 is attention of its own keys and values.
  int64_t kv_lora_rank = 0;
  int64_t q_lora_rank = 0;     // 0: queries come from the hidden state at once
  int64_t rope_head_dim = 0;   // rotated channels of a head beside head_dim
  int64_t value_head_dim = 0;  // 0: head_dim

  bool is_moe() const { return experts > 0; }
  bool is_latent() const { return kv_lora_rank > 0; }
  // By number from 0.
  bool layer_has_experts(int64_t layer) const { return is_moe() && layer >= first_dense_layers; }
  int64_t expert_layers() const { return is_moe() ? layers - first_dense_layers : 0; }
  int64_t dense_layers() const { return layers - expert_layers(); }
  int64_t expert_width() const { return expert_ffn > 0 ? expert_ffn : ffn; }

  int64_t key_head_dim() const { return head_dim + rope_head_dim; }
  int64_t value_dim() const { return value_head_dim > 0 ? value_head_dim : head_dim; }
  int64_t query_width() const { return heads * key_head_dim(); }
  // Of the attention output, which the output projection reads.
  int64_t attention_width() const { return heads * value_dim(); }
  int64_t kv_width() const { return kv_heads * head_dim; }
  // Of the latents of queries and of keys and values, with the shared rotated key.
  int64_t latent_width() const { return q_lora_rank + kv_lora_rank + rope_head_dim; }
  int64_t mlp_matrices() const { return gated_mlp ? 3 : 2; }

  int64_t attention_parameters() const {
    const int64_t output = attention_width() * hidden;
    if (!is_latent()) return hidden * (query_width() + 2 * kv_width()) + output;
    const int64_t query = q_lora_rank > 0 ? q_lora_rank * query_width() : hidden * query_width();
    return hidden * latent_width() + query + kv_lora_rank * heads * (head_dim + value_dim()) +
           output;
  }
  int64_t ffn_parameters() const { return mlp_matrices() * hidden * ffn; }
  int64_t expert_parameters() const { return mlp_matrices() * hidden * expert_width(); }
  int64_t router_parameters() const { return hidden * experts; }
  // Of the matrices of one layer, with all experts or with those a token visits.
  int64_t layer_matrix_parameters() const { return layer_matrix_parameters(is_moe()); }
  int64_t layer_matrix_parameters(bool with_experts) const {
    return attention_parameters() + (with_experts ? expert_layer(experts) : ffn_parameters());
  }
  int64_t active_layer_matrix_parameters(bool with_experts) const {
    return attention_parameters() +
           (with_experts ? expert_layer(experts_per_token) : ffn_parameters());
  }
  // Of all layers.
  int64_t matrix_parameters() const {
    return expert_layers() * layer_matrix_parameters(true) +
           dense_layers() * layer_matrix_parameters(false);
  }
  int64_t active_matrix_parameters() const {
    return expert_layers() * active_layer_matrix_parameters(true) +
           dense_layers() * active_layer_matrix_parameters(false);
  }
  int64_t norm_parameters_per_layer() const {
    return 2 * hidden + (is_latent() ? q_lora_rank + kv_lora_rank : 0);
  }
  int64_t embedding_parameters() const { return vocab * hidden; }
  // Of the whole model, with the norms of each layer and the last one.
  int64_t parameters() const {
    return matrix_parameters() + layers * norm_parameters_per_layer() + hidden +
           (tied_embeddings ? 1 : 2) * embedding_parameters();
  }

 private:
  int64_t expert_layer(int64_t routed) const {
    return (routed + shared_experts) * expert_parameters() + router_parameters();
  }
};

}  // namespace herdsim

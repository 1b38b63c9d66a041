// The kernels of one layer on one rank of its tensor-parallel group, with their shapes.
#pragma once

#include <string>
#include <vector>

#include "sim/opgraph/op_graph.h"
#include "workloads/workload_spec.h"

namespace herdsim {

// One matrix product [tokens, in] -> [tokens, out] with weights of this rank.
struct Product {
  std::string name;
  int64_t in = 0, out = 0;
};

// Sizes of a mixture of experts on one rank, for the mean rank of its expert-parallel group.
struct ExpertShares {
  int64_t sent = 0;      // copies of this rank's tokens that leave for experts
  int64_t received = 0;  // that its experts compute, with those of its tensor ranks
  int64_t local = 0;     // experts of this rank
  int64_t a_local = 0;   // tokens of one of them
  int64_t width = 0;     // of an expert on this rank
  Bytes dispatch;        // of the all-to-all to the experts, as the busiest rank has it
  Bytes combine;         // of the one back, in bf16 as gradients are both ways
  Bytes tensor_gather;  // of the received tokens over the tensor ranks of an expert, gathered; zero
                        // where it is whole
};
ExpertShares expert_shares(const WorkloadSpec& spec);

class LayerKernels {
 public:
  explicit LayerKernels(const WorkloadSpec& spec) : spec_(spec) {}

  int64_t tokens() const { return spec_.tokens(); }
  DataType linear_type() const { return spec_.training.precision; }

  Kernel gemm(std::string name, int64_t m, int64_t n, int64_t k, GemmPass pass,
              DataType dtype) const {
    return {std::move(name), TimeTerm::kCompute, GemmShape{m, n, k, dtype, pass}};
  }
  Kernel stream(std::string name, double moved, StreamClass stream_class) const;

  // Passes of a product over `rows` tokens. The weight gradient comes with adding it to the
  // accumulated one.
  Kernel forward(const Product& p, int64_t rows) const;
  Kernel dgrad(const Product& p, int64_t rows) const;
  void append_wgrad(std::vector<Kernel>& kernels, const Product& p, int64_t rows) const;
  // What casts the operands of an fp8 product in kernels of their own, where the stack has such:
  // before its forward pass, and before both gradients or the half of them that a backward pass
  // has. `Gathered`: the tensor comes over the tensor ranks, a rank's own part of it cast before in
  // case the gather is in fp8.
  enum class Gathered : uint8_t { kNo, kYes };
  void append_forward_casts(std::vector<Kernel>& kernels, const Product& p, int64_t rows,
                            Gathered input) const;
  void append_backward_casts(std::vector<Kernel>& kernels, const Product& p, int64_t rows,
                             Gathered gradient, bool data, bool weight) const;
  // The same of the experts of this rank, each a product of its own.
  Kernel expert_forward(const Product& p, const ExpertShares& e) const;
  Kernel expert_dgrad(const Product& p, const ExpertShares& e) const;
  void append_expert_wgrad(std::vector<Kernel>& kernels, const Product& p,
                           const ExpertShares& e) const;

  // All queries of this rank against all keys of their sequences, under the causal mask.
  AttentionShape attention_shape(AttentionPass pass) const;
  Kernel attention(const AttentionShape& shape) const;
  // With the copies that the kernel needs round it.
  std::vector<Kernel> attention_with_copies(AttentionPass pass) const;

  // A share of the layer's element-wise traffic. The hidden-width part is split by sequence where
  // the plan does so.
  Kernel elementwise(std::string name, const ElementwiseTraffic& traffic,
                     double hidden_share) const;
  // The activation function over `width` channels of `rows` tokens.
  Kernel activation(const ElementwiseTraffic& traffic, double rows, int64_t width) const;

  // Products of the dense feed-forward layer or of the shared experts, split over TP.
  Product up(bool shared) const;
  Product down(bool shared) const;
  // Of an attention block: what reads the hidden state, or the latents where there are, and what
  // writes it.
  std::vector<Product> qkv() const;
  Product proj() const;
  Product latents() const;

  // Products that read the input of a block's column-parallel part, where the model has them apart.
  int64_t attention_readers() const { return spec_.model.is_latent() ? 1 : 3; }
  int64_t feed_forward_readers() const { return spec_.model.mlp_matrices() - 1; }
  // How often that input is gathered, and its gradient reduced: in a row, so that it takes as long
  // as one transfer of so many times the bytes.
  int64_t gathers(int64_t readers) const { return spec_.software.tp_gathers_apart ? readers : 1; }
  int64_t reductions(int64_t readers) const {
    return spec_.software.tp_reduces_apart ? readers : 1;
  }

  // K and V of a whole sequence for this rank's heads.
  Bytes keys_and_values() const;

 private:
  double own_share(Gathered tensor) const;
  void append_cast(std::vector<Kernel>& kernels, std::string name, double bytes) const;
  // Of a kind whose products a rank's experts run in one kernel or one after another.
  Kernel expert_gemm(const std::string& name, int64_t m, int64_t n, int64_t k, GemmPass pass,
                     const ExpertShares& e) const;
  int64_t mlp_width(bool shared) const;

  const WorkloadSpec& spec_;  // Must outlive this object.
};

}  // namespace herdsim

// The host's kernels: plain loops over whole buffers, each with the reference it is checked
// against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/models/kernel.h"

namespace herdsim {

// y = a x + b: one read, one write.
void scale_stream(std::span<const float> x, std::span<float> y);

// Adam with fp32 state: p, m, v and g are read, p, m and v written: 28 bytes a parameter.
struct AdamState {
  std::span<float> p, m, v;
  std::span<const float> g;
};
void adam_step(const AdamState& state);

// Two multiply-adds a lane and step, on registers alone; about `flops` operations. The sum keeps
// the compiler from dropping them.
float burn_flops(double flops);

// c[m, n] += or = a b in one of the three layouts of a linear layer.
void product(const GemmShape& shape, const float* a, const float* b, float* c);

// One head after another: scores, softmax, values; backward recomputes the scores. `scratch` holds
// two squares of query_tokens by kv_tokens.
void attention(const AttentionShape& shape, const float* q, const float* k, const float* v,
               const float* dout, float* out, float* dq, float* dk, float* dv, float* scratch);

// Throw std::runtime_error where a kernel differs from double precision by more than fp32's
// rounding, on small inputs of random numbers.
void check_product(GemmPass pass);
void check_attention(AttentionPass pass);
void check_streams();

}  // namespace herdsim

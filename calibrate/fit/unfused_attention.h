// Attention as frameworks ran it before fused kernels: batched products whose scores go through
// memory.
//
// A score is a query by a key, kept in 16 bits, of the whole square: the causal mask saves nothing.
//   forward   4 d FLOPs; the product writes 2 bytes, scale-mask-softmax moves 4, dropout 5 (a byte
//   of
//             mask), the second product reads 2: 13 bytes (Megatron-LM v2.6, core attention with
//             its fused softmax)
//   backward  8 d FLOPs in four products; 2 written by dP, 5 by dropout's, 6 by softmax's gradient,
//             6 read for dQ, dK and dV: 19 bytes
// d: head dimension. Products with so small a d reach 45 % of the peak (assumed, 35 to 60 %); the
// rest streams as fused kernels do. Softmax is memory bound, so the two do not overlap.
#pragma once

#include <string_view>

#include "sim/models/device_profile.h"

namespace herdsim {

constexpr std::string_view kUnfusedAttention = "unfused";

// That kernel, for head dimensions 64 to 256.
// Requires: a profile with peaks, a launch floor and the curve of fused streams.
AttentionKernel unfused_attention(const DeviceProfile& profile);

}  // namespace herdsim

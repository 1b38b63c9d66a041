// Work of one GPU kernel, before anybody says how long it takes: shapes and bytes, no times.
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace herdsim {

enum class DataType : uint8_t { kBf16, kFp8, kFp16, kFp32 };

constexpr int64_t bytes_per_element(DataType t) {
  switch (t) {
    case DataType::kBf16:
    case DataType::kFp16:
      return 2;
    case DataType::kFp8:
      return 1;
    case DataType::kFp32:
      return 4;
  }
  return 0;
}

// Operand layouts as cuBLAS names them, by the pass of a linear layer that uses them.
enum class GemmPass : uint8_t {
  kForward,  // TN: activations times weights
  kDgrad,    // NN: gradient of the activations
  kWgrad,    // NT: gradient of the weights, accumulated in fp32
};

// C[m, n] = A[m, k] B[k, n]; m counts tokens in the forward pass. `groups` such products of different weights may run in
// one kernel, as those of the experts of a rank.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  DataType dtype = DataType::kBf16;
  GemmPass pass = GemmPass::kForward;
  int64_t groups = 1;

  Flops flops() const {
    return Flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                 static_cast<double>(groups));
  }
};

enum class AttentionPass : uint8_t { kForward, kBackward };

// Fused attention of `batch` sequences. A rank of a context-parallel group holds `query_tokens` of a sequence and sees
// `kv_tokens` of it; without context parallelism they are equal.
struct AttentionShape {
  int64_t batch = 1;
  int64_t query_tokens = 0, kv_tokens = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t value_head_dim = 0;  // 0: as queries and keys
  // Share of the query-by-key rectangle that the mask leaves: 1 full, 0.5 causal, less with document masks.
  double mask_fraction = 0.5;
  AttentionPass pass = AttentionPass::kForward;

  // Two products forward, of the scores and of the values; five backward (the scores are recomputed), three of them of the
  // scores' width.
  Flops flops() const {
    const double rectangle = static_cast<double>(batch * heads) *
                             static_cast<double>(query_tokens) * static_cast<double>(kv_tokens);
    const auto score = static_cast<double>(head_dim);
    const auto value = static_cast<double>(value_head_dim > 0 ? value_head_dim : head_dim);
    const double widths =
        pass == AttentionPass::kForward ? 2 * score + 2 * value : 6 * score + 4 * value;
    return Flops(widths * rectangle * mask_fraction);
  }
};

// How well an element-wise or reduction kernel streams; each class is one rate of the device profile.
enum class StreamClass : uint8_t {
  kFused,      // hand-written or compiled fusions: 79-90 % of the HBM rate
  kFramework,  // stock framework kernels, one operation each
  kOptimizer,  // multi-tensor optimizer update
};

// A kernel that HBM bounds: reads plus writes.
struct MemoryTraffic {
  Bytes moved;
  StreamClass stream = StreamClass::kFused;
};

}  // namespace herdsim

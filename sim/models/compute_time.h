// How long one kernel takes on one device, alone: pure functions of its shape and the device's
// profile.
//
// The profile's curves are evaluated where they were measured. Outside, the result scales as the
// roofline does, max(flops / peak, bytes / HBM rate), from the nearest measured shape, and
// `extrapolated` is set; there is no shape without an answer, and none takes less than the launch
// floor. A kernel never becomes faster as one of its sizes grows (the rows of a product, the tokens
// of a sequence, the bytes of a stream).
//
//   const AttentionKernelId kernel = *profile.attention_kernel("fa3");     // once
//   const KernelCost cost = attention_cost({.batch = 1, .query_tokens = 8192, ...}, kernel,
//   profile);
//
// Complexity: constant, no allocation, no look-up by name; below 200 ns a call
// (tests/sim/models/compute_time_bench.cc).
#pragma once

#include "sim/base/provenance.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/models/device_profile.h"
#include "sim/models/kernel.h"

namespace herdsim {

struct KernelCost {
  Duration time;
  bool extrapolated = false;  // outside the range or the kinds that were measured
  Evidence evidence = Evidence::kAssumed;
  // Share of the bound: of the dense peak for products and attention, of the HBM (or host link)
  // rate for streams.
  Ratio of_peak;
};

// A data type the profile has no surface for takes that of bf16, scaled by the peaks, and counts as
// assumed. fp16 runs at bf16's speed and counts as such. Requires: m, n, k >= 0. An empty product
// (any size zero) costs nothing. Groups cost what one product with the rows of all costs, whole tiles counted, or what
// their operands take to stream, if that is longer.
KernelCost gemm_cost(const GemmShape& shape, const DeviceProfile& profile);

// A mask that leaves less than half of the rectangle (documents packed into one sequence) is that
// of shorter causal sequences; between a half and all of it the causal and the full curve are
// mixed. A head dimension without a curve takes the nearest one.
KernelCost attention_cost(const AttentionShape& shape, AttentionKernelId kernel,
                          const DeviceProfile& profile);

KernelCost stream_cost(const MemoryTraffic& traffic, const DeviceProfile& profile);

KernelCost host_copy_cost(Bytes amount, HostDirection direction, const DeviceProfile& profile);

// Of `amount` each way. Requires: the profile has that curve.
KernelCost peer_copy_cost(Bytes amount, PeerDirection direction, const DeviceProfile& profile);

}  // namespace herdsim

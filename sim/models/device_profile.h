// What one device does, in numbers that were measured or printed by somebody: rates of matrix
// products, attention, memory-bound kernels, copies to the host, and the bus bandwidths its
// collectives reach. A plain value; the models (compute_time.h, the NCCL model) read it,
// calibrate/profile reads and writes it as a file.
//
// Every curve carries its provenance, and its outermost points are its valid range: outside it the
// models extrapolate and say so. Times are of kernels that run back to back for seconds, as
// training runs them, at the board's default power limit; what a framework adds round them is in
// software_stack.h.
//
//   const DeviceProfile h100 = load_profile("h100-sxm5-80gb");           //
//   calibrate/profile/profile_file.h gemm_cost({.m = 8192, .n = 8192, .k = 8192}, h100).time; //
//   sim/models/compute_time.h
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/provenance.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/models/gemm_tiles.h"
#include "sim/models/interpolation.h"
#include "sim/models/kernel.h"

namespace herdsim {

// Time of C[m, n] = A[m, k] B[k, n] in the forward layout (TN).
//
//   body(m, n, k) = nanoseconds.at(m', n, k)       m' = m rounded up to `row_step` where m <=
//   row_step_until time = launch floor + body * sustained.at(body) / pass rate
//
// Rows are rounded up because a product with few rows runs in one wave of tiles and a row more
// costs more than its share; with many rows cuBLAS changes tile and schedule by shape and no
// sawtooth is left to model. `sustained` is one for kernels shorter than about half a millisecond
// and more where the board's power limit lowers the clock.
//
// Where a device's products follow their waves instead (`tiles`, gemm_tiles.h), the grid is of the
// time at a tile factor of one and
//
//   body(m, n, k) = max(nanoseconds.at(m, n, k) * tile_factor(m, n, k), operations / peak)
struct GemmSurface {
  DataType dtype = DataType::kBf16;
  LogGrid3 nanoseconds;  // over (m, n, k), beyond the launch floor; never falls as a size grows
  LogCurve sustained;    // body in nanoseconds -> factor of at least 1; empty: 1
  int64_t row_step = 1;
  int64_t row_step_until = 0;
  GemmTiles tiles;  // empty: none
  // Rate of the other layouts over that of the forward pass.
  double dgrad_rate = 1.0;
  double wgrad_rate = 1.0;
  Provenance provenance;
  Provenance layout_provenance;
};

// Rate of one attention kernel with every SM busy, counting the operations of
// AttentionShape::flops().
//
// Queries and keys are taken in tiles of `tile_rows` by `tile_keys`. Under a causal mask tiles
// differ in length and the kernels balance them; a full mask makes them equal, so whole tiles and
// whole waves are paid for:
//
//   causal   rate = teraflops.at(kv tokens) * fill.at(w)                         w = heads * batch
//   * row tiles / SMs full     rate = teraflops.at(kv tokens) * (w / ceil(w))^wave_exponent * (area
//   / area rounded up to tiles)
struct AttentionCurve {
  AttentionPass pass = AttentionPass::kForward;
  bool causal = true;
  int64_t head_dim = 128;
  LogCurve teraflops;  // over the tokens of keys and values
  int64_t tile_rows = 128;
  int64_t tile_keys = 128;
  double wave_exponent = 0;  // 1: the last wave costs a whole one; 0: it costs its share
  // What was measured of the points; those outside follow another curve, as the source says.
  int64_t measured_from = 0;
  int64_t measured_to = 0;
  Provenance provenance;
};

// One implementation, by the name a software stack calls it: "cudnn9", "fa3", "fa2", "triton-fa1".
struct AttentionKernel {
  std::string name;
  std::vector<AttentionCurve> curves;  // forward and backward at least
  LogCurve fill;                       // causal: tiles per SM -> share of the rate; empty: 1
  Provenance fill_provenance;
  Duration floor;  // of a call, however little it computes
};

// time = launch floor + bytes / rate.at(bytes)
struct StreamCurve {
  LogCurve bytes_per_second;  // over the bytes moved, reads plus writes
  Provenance provenance;
};
constexpr size_t kStreamClasses = 3;  // one a StreamClass, in its order

enum class HostDirection : uint8_t { kToDevice, kToHost };
enum class PeerDirection : uint8_t { kOneWay, kBothWays };  // both: at the same time

// Bus bandwidth of one collective as nccl-tests defines it, over its "size".
struct CollectiveCurve {
  struct Point {
    Bytes size;
    Bandwidth bus_bandwidth;
    // The whole collective at this size: what the point was computed from.
    Duration time;
  };
  std::string kind;  // "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"
  int64_t ranks = 0;
  int64_t nodes = 1;
  std::vector<Point> points;  // by increasing size
  Provenance provenance;
};

using AttentionKernelId = Id<struct AttentionKernelTag>;

struct DeviceProfile {
  std::string name;
  std::string device;  // as its vendor prints it
  // Dense peaks by DataType, without sparsity. Zero where the device lacks the type.
  std::array<FlopRate, 4> peak{};
  Bytes hbm;
  Bandwidth hbm_bandwidth;
  int64_t sms = 0;
  double board_watts = 0;
  Provenance device_provenance;  // of everything above

  Duration launch_floor;  // of the shortest kernel, launched back to back
  Provenance launch_provenance;
  // The clock that a whole training step sustains under the power limit over that of the tables below; products and
  // attention take as much longer.
  double training_clock = 1;
  Provenance clock_provenance;
  // SMs that a kernel loses to each SM of a transfer beside it: 1, that SM; more where the transfer takes memory bandwidth
  // and cache as well.
  double sms_lost_per_transfer_sm = 1;
  Provenance sharing_provenance;
  std::vector<GemmSurface> gemm;  // bf16 at least
  TypedVector<AttentionKernelId, AttentionKernel> attention;
  std::array<StreamCurve, kStreamClasses> stream;
  std::array<StreamCurve, 2> host_copy;  // by HostDirection
  // From one device to another of its node by copy engine, each way, by PeerDirection; empty: not measured.
  std::array<StreamCurve, 2> peer_copy;
  std::vector<CollectiveCurve> collectives;

  FlopRate peak_of(DataType t) const { return peak[static_cast<size_t>(t)]; }
  const StreamCurve& stream_of(StreamClass c) const { return stream[static_cast<size_t>(c)]; }

  // The kernel of that name, to be resolved once and not once an op. nullopt where the profile has
  // none.
  std::optional<AttentionKernelId> attention_kernel(std::string_view kernel_name) const;
  // The curve of a kind and shape of group, or nullptr.
  const CollectiveCurve* collective(std::string_view kind, int64_t ranks, int64_t nodes) const;
};

}  // namespace herdsim

#include "sim/models/compute_time.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace herdsim {
namespace {

struct SurfaceChoice {
  const GemmSurface* surface = nullptr;
  double rate = 1;  // of this type over that of the surface
  bool assumed = false;
};

SurfaceChoice surface_for(DataType dtype, const DeviceProfile& profile) {
  const GemmSurface* bf16 = nullptr;
  for (const GemmSurface& surface : profile.gemm) {
    if (surface.dtype == dtype) return {&surface};
    if (surface.dtype == DataType::kBf16) bf16 = &surface;
  }
  HERDSIM_CHECK(bf16 != nullptr) << "profile " << profile.name << " has no bf16 products";
  if (dtype == DataType::kFp16) return {bf16};
  const double peak = profile.peak_of(dtype).per_second();
  // A device without the type runs it through bf16 units at bf16's speed at best.
  const double ratio = peak > 0 ? peak / profile.peak_of(DataType::kBf16).per_second() : 1.0;
  return {bf16, ratio, true};
}

double pass_rate(const GemmSurface& surface, GemmPass pass) {
  switch (pass) {
    case GemmPass::kForward:
      return 1.0;
    case GemmPass::kDgrad:
      return surface.dgrad_rate;
    case GemmPass::kWgrad:
      return surface.wgrad_rate;
  }
  return 1.0;
}

int64_t rounded_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

int64_t rounded_rows(int64_t m, const GemmSurface& surface) {
  if (m > surface.row_step_until || surface.row_step <= 1) return m;
  return rounded_up(m, surface.row_step);
}

// Time beyond the grid over time at its border. Above, every size multiplies arithmetic and traffic
// alike; below, tiles are not smaller than the smallest that was measured.
double beyond(double size, const LogAxis& axis) {
  return std::max(1.0, size / axis.nodes().back());
}

// Time of a forward product beyond the launch floor.
double body_nanoseconds(const GemmShape& shape, const GemmSurface& surface,
                        const DeviceProfile& profile) {
  const double m = static_cast<double>(rounded_rows(shape.m, surface));
  const double n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  const LogGrid3& grid = surface.nanoseconds;
  double past = 1;
  if (!grid.covers(m, n, k))
    past = beyond(m, grid.axes()[0]) * beyond(n, grid.axes()[1]) * beyond(k, grid.axes()[2]);
  if (surface.tiles.empty()) return grid.at(m, n, k) * past;
  // Tiles go on growing past the grid, to the power of their exponent.
  GemmShape of_surface = shape;
  of_surface.dtype = surface.dtype;
  const double body = grid.at(m, n, k) * tile_factor(surface.tiles, of_surface, profile.sms) *
                      std::pow(past, 1 - surface.tiles.exponent);
  // Between nodes nothing else keeps it to the peak.
  return std::max(body, 1e9 * shape.flops().count() / profile.peak_of(surface.dtype).per_second());
}

struct CurveRate {
  double per_second = 0;
  bool extrapolated = false;
  Evidence evidence = Evidence::kAssumed;
};

const AttentionCurve* nearest_curve(const AttentionKernel& kernel, AttentionPass pass, bool causal,
                                    int64_t head_dim) {
  const AttentionCurve* best = nullptr;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const AttentionCurve& curve : kernel.curves) {
    if (curve.pass != pass) continue;
    // Any head dimension of the right mask beats any of the wrong one.
    const double distance =
        std::abs(std::log2(static_cast<double>(curve.head_dim) / static_cast<double>(head_dim))) +
        (curve.causal == causal ? 0.0 : 100.0);
    if (distance < best_distance) {
      best_distance = distance;
      best = &curve;
    }
  }
  HERDSIM_CHECK(best != nullptr) << "attention kernel " << kernel.name << " lacks a pass";
  return best;
}

// Rate of one curve for a shape: the saturated rate, less what idle SMs and part-filled tiles cost.
CurveRate curve_rate(const AttentionKernel& kernel, const AttentionShape& shape, bool causal,
                     double kv_tokens, int64_t sms) {
  const AttentionCurve& curve = *nearest_curve(kernel, shape.pass, causal, shape.head_dim);
  const bool measured = curve.head_dim == shape.head_dim && curve.causal == causal &&
                        kv_tokens >= static_cast<double>(curve.measured_from) &&
                        kv_tokens <= static_cast<double>(curve.measured_to);
  if (!curve.causal) {
    kv_tokens = static_cast<double>(rounded_up(static_cast<int64_t>(kv_tokens), curve.tile_keys));
  }
  CurveRate rate{.per_second = curve.teraflops.at(kv_tokens) * 1e12,
                 .extrapolated = !measured,
                 .evidence = curve.provenance.evidence};
  const double calls = static_cast<double>(shape.batch * shape.heads) / static_cast<double>(sms);
  if (curve.causal) {
    if (kernel.fill.empty()) return rate;
    const double row_tiles =
        static_cast<double>(shape.query_tokens) / static_cast<double>(curve.tile_rows);
    const double waves = calls * std::max(1.0, row_tiles);
    rate.per_second *= kernel.fill.at(waves);
    // Beyond the last point every SM is busy; before the first the curve is a guess.
    rate.extrapolated = rate.extrapolated || waves < kernel.fill.points().front().x;
    return rate;
  }
  const int64_t rows = rounded_up(shape.query_tokens, curve.tile_rows);
  const double area =
      static_cast<double>(shape.query_tokens) * static_cast<double>(shape.kv_tokens);
  rate.per_second *= area / (static_cast<double>(rows) * kv_tokens);
  if (curve.wave_exponent > 0) {
    const double waves = calls * static_cast<double>(rows / curve.tile_rows);
    rate.per_second *= std::pow(waves / std::ceil(waves), curve.wave_exponent);
  }
  return rate;
}

KernelCost transfer_cost(Bytes amount, const StreamCurve& curve, Bandwidth bound, Duration floor) {
  if (amount.count() <= 0) return {};
  const double x = static_cast<double>(amount.count());
  const Duration time = floor + seconds_rounded_up(x / curve.bytes_per_second.at(x));
  return {.time = time,
          .extrapolated = !curve.bytes_per_second.covers(x),
          .evidence = curve.provenance.evidence,
          .of_peak = Ratio(x / time.seconds() / static_cast<double>(bound.bytes_per_second()))};
}

// The link's rate is that of the largest copies.
KernelCost link_copy_cost(Bytes amount, const StreamCurve& curve, const DeviceProfile& profile) {
  const Bandwidth bound = bytes_per_second(curve.bytes_per_second.points().back().y);
  return transfer_cost(amount, curve, bound, profile.launch_floor);
}

// One kernel for all groups: its tiles fill the device like those of one product with the rows of all groups, each rounded
// up to whole tiles; it is never faster than its operands stream, of which every group has weights of its own.
KernelCost grouped_gemm_cost(const GemmShape& shape, const DeviceProfile& profile) {
  constexpr int64_t kTileRows = 128;  // of cuBLAS's and CUTLASS's large bf16 and fp8 tiles on sm80 and sm90
  GemmShape whole = shape;
  whole.groups = 1;
  whole.m = shape.groups * rounded_up(shape.m, kTileRows);
  KernelCost cost = gemm_cost(whole, profile);
  const auto d = [](int64_t n) { return static_cast<double>(n); };
  const double moved =
      d(bytes_per_element(shape.dtype)) * d(whole.m) * d(shape.k) +
      d(bytes_per_element(shape.dtype)) * d(shape.groups) * d(shape.n) * d(shape.k) +
      d(bytes_per_element(DataType::kBf16)) * d(whole.m) * d(shape.n);
  const double rate = profile.stream_of(StreamClass::kFused).bytes_per_second.points().back().y;
  const Duration streaming = profile.launch_floor + seconds_rounded_up(moved / rate);
  cost.time = std::max(cost.time, streaming);
  const double peak = profile.peak_of(shape.dtype).per_second();
  cost.of_peak = Ratio(peak > 0 ? shape.flops().count() / cost.time.seconds() / peak : 0.0);
  return cost;
}

}  // namespace

KernelCost gemm_cost(const GemmShape& shape, const DeviceProfile& profile) {
  if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0) return {};
  if (shape.groups > 1) return grouped_gemm_cost(shape, profile);
  const SurfaceChoice choice = surface_for(shape.dtype, profile);
  const GemmSurface& surface = *choice.surface;
  const bool inside =
      surface.nanoseconds.covers(static_cast<double>(rounded_rows(shape.m, surface)),
                                 static_cast<double>(shape.n), static_cast<double>(shape.k));
  double body = body_nanoseconds(shape, surface, profile);
  if (!surface.sustained.empty()) body *= surface.sustained.at(body);
  body /= choice.rate * pass_rate(surface, shape.pass);
  const Duration time = profile.launch_floor + seconds_rounded_up(body * 1e-9);
  const double peak = profile.peak_of(shape.dtype).per_second();
  return {.time = time,
          .extrapolated = !inside || choice.assumed,
          .evidence = choice.assumed ? Evidence::kAssumed : surface.provenance.evidence,
          .of_peak = Ratio(peak > 0 ? shape.flops().count() / time.seconds() / peak : 0.0)};
}

KernelCost attention_cost(const AttentionShape& shape, AttentionKernelId id,
                          const DeviceProfile& profile) {
  const double flops = shape.flops().count();
  if (flops <= 0) return {};
  const AttentionKernel& kernel = profile.attention[id];
  const double kv = static_cast<double>(shape.kv_tokens);
  CurveRate rate;
  if (shape.mask_fraction <= 0.5) {
    rate =
        curve_rate(kernel, shape, true, std::max(1.0, kv * 2.0 * shape.mask_fraction), profile.sms);
  } else {
    rate = curve_rate(kernel, shape, false, kv, profile.sms);
    if (shape.mask_fraction < 1.0) {
      const CurveRate causal = curve_rate(kernel, shape, true, kv, profile.sms);
      const double share = 2.0 * (1.0 - shape.mask_fraction);
      rate.per_second += share * (causal.per_second - rate.per_second);
      rate.extrapolated = rate.extrapolated || causal.extrapolated;
      rate.evidence = std::max(rate.evidence, causal.evidence);
    }
  }
  const Duration time = kernel.floor + seconds_rounded_up(flops / rate.per_second);
  const double peak = profile.peak_of(DataType::kBf16).per_second();
  return {.time = time,
          .extrapolated = rate.extrapolated,
          .evidence = rate.evidence,
          .of_peak = Ratio(flops / time.seconds() / peak)};
}

KernelCost stream_cost(const MemoryTraffic& traffic, const DeviceProfile& profile) {
  return transfer_cost(traffic.moved, profile.stream_of(traffic.stream), profile.hbm_bandwidth,
                       profile.launch_floor);
}

KernelCost host_copy_cost(Bytes amount, HostDirection direction, const DeviceProfile& profile) {
  return link_copy_cost(amount, profile.host_copy[static_cast<size_t>(direction)], profile);
}

KernelCost peer_copy_cost(Bytes amount, PeerDirection direction, const DeviceProfile& profile) {
  return link_copy_cost(amount, profile.peer_copy[static_cast<size_t>(direction)], profile);
}

}  // namespace herdsim

#include "calibrate/harness/measured_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "calibrate/fit/collective_fit.h"
#include "calibrate/fit/gemm_fit.h"
#include "calibrate/fit/isotonic.h"
#include "calibrate/profile/error_summary.h"
#include "sim/base/error.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

double as_double(Bytes bytes) { return static_cast<double>(bytes.count()); }

// Rates over sizes from times, so that time never falls.
LogCurve rates_over(const std::map<double, double>& seconds_at, double floor) {
  std::vector<double> log_seconds;
  for (const auto& [bytes, seconds] : seconds_at)
    log_seconds.push_back(std::log(std::max(seconds - floor, 0.1 * seconds)));
  make_nondecreasing(log_seconds, std::vector<double>(log_seconds.size(), 1.0));
  // Written with four figures, equal times would read as falling ones.
  constexpr double kLeastRise = 0.002;
  for (size_t i = 1; i < log_seconds.size(); ++i) {
    log_seconds[i] = std::max(log_seconds[i], log_seconds[i - 1] + kLeastRise);
  }
  std::vector<LogCurve::Point> points;
  for (const auto& [bytes, seconds] : seconds_at) {
    points.push_back({bytes, bytes / std::exp(log_seconds[points.size()])});
  }
  return LogCurve(std::move(points));
}

// The nodes near what was measured, and one to each side.
std::vector<double> nodes_near(const std::vector<double>& nodes, double low, double high) {
  std::vector<double> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool below = i + 1 < nodes.size() && nodes[i + 1] < low;
    const bool above = i > 0 && nodes[i - 1] > high;
    if (!below && !above) kept.push_back(nodes[i]);
  }
  return kept;
}

class Builder {
 public:
  Builder(const ProfileRequest& request, const Backend& backend,
          const CalibrationResult& calibration)
      : request_(request), backend_(backend), results_(calibration.results) {}

  DeviceProfile build() {
    profile_.name = request_.name;
    device();
    products();
    attention();
    streams();
    collectives();
    sharing();
    faults_.throw_if_any();
    return std::move(profile_);
  }

 private:
  template <class Kind>
  std::vector<std::pair<Kind, double>> of() const {
    std::vector<std::pair<Kind, double>> found;
    for (const ProbeResult& r : results_) {
      if (const Kind* kind = std::get_if<Kind>(&r.probe))
        found.emplace_back(*kind, r.summary.seconds);
    }
    return found;
  }

  Provenance measured(const std::string& what) const {
    return {Evidence::kMeasured, fmt::format("{}, {}; {}; {}", what, backend_.facts().name,
                                             backend_.facts().software, request_.method)};
  }

  void missing(const std::string& what) {
    faults_.add({.field = "calibration",
                 .problem = "has measured no " + what + ", without which there is no profile"});
  }

  void device() {
    const DeviceFacts& facts = backend_.facts();
    profile_.device = facts.name;
    profile_.hbm = facts.memory;
    profile_.sms = facts.multiprocessors;
    profile_.board_watts = facts.watts > 0 ? facts.watts : 1;
    double peak = facts.peak_flops;
    for (const auto& [probe, seconds] : of<PeakProbe>())
      peak = std::max(peak, kPeakProbeFlops / seconds);
    for (const auto& [shape, seconds] : of<GemmShape>()) {
      const double units = shape.dtype == DataType::kFp8 ? 0.5 : 1;
      peak = std::max(peak, units * shape.flops().count() / seconds);
    }
    for (const auto& [shape, seconds] : of<AttentionShape>())
      peak = std::max(peak, shape.flops().count() / seconds);
    // Beyond rounding, no printed rate may exceed it.
    profile_.peak[static_cast<size_t>(DataType::kBf16)] = FlopRate::from_per_second(1.001 * peak);
    double rate = facts.memory_rate;
    if (rate <= 0) {
      for (const auto& [traffic, seconds] : of<MemoryTraffic>())
        rate = std::max(rate, as_double(traffic.moved) / seconds);
    }
    profile_.hbm_bandwidth = bytes_per_second(std::max(rate, 1.0));
    profile_.device_provenance =
        measured(facts.peak_flops > 0 ? "data sheet and driver" : "peak and memory rate");
    const auto launch = of<LaunchProbe>();
    if (launch.empty()) return missing("launch");
    double floor = launch.front().second;
    for (const ProbeResult& r : results_) floor = std::min(floor, r.summary.seconds);
    floor_ = std::max(floor, 1e-9);
    profile_.launch_floor = seconds_rounded_up(floor_);
    profile_.launch_provenance = measured("shortest call");
  }

  void products() {
    products_of(DataType::kBf16, "bf16");
    if (profile_.gemm.empty()) return missing("product");
    products_of(DataType::kFp8, "fp8");
  }

  // Adds the surface of a type, where there are products of it.
  void products_of(DataType dtype, const std::string& name) {
    GemmSource source;
    double low[3] = {1e18, 1e18, 1e18}, high[3] = {0, 0, 0};
    for (const auto& [shape, seconds] : of<GemmShape>()) {
      if (shape.dtype != dtype || shape.pass != GemmPass::kForward || seconds <= floor_) continue;
      // Groups count as rows of one product, as gemm_cost() counts them.
      const GemmShape whole{
          .m = shape.m * shape.groups, .n = shape.n, .k = shape.k, .dtype = dtype};
      source.rows.push_back({whole, name, seconds});
      const int64_t sizes[3] = {whole.m, whole.n, whole.k};
      for (size_t i = 0; i < 3; ++i) {
        low[i] = std::min(low[i], static_cast<double>(sizes[i]));
        high[i] = std::max(high[i], static_cast<double>(sizes[i]));
      }
    }
    if (source.rows.empty()) return;
    // Fp8 units are twice as wide.
    if (dtype == DataType::kFp8)
      profile_.peak[static_cast<size_t>(dtype)] = profile_.peak_of(DataType::kBf16) * 2;
    const GemmGrid all = default_gemm_grid();
    const GemmGrid grid{nodes_near(all.m, low[0], high[0]), nodes_near(all.n, low[1], high[1]),
                        nodes_near(all.k, low[2], high[2])};
    GemmSurface surface = fit_gemm({source}, dtype, profile_, grid);
    const bool other = dtype == DataType::kBf16 && backend_.facts().product_type != DataType::kBf16;
    surface.provenance =
        measured(other ? "matrix products in fp32, in place of bf16" : name + " matrix products");
    profile_.gemm.push_back(surface);
    surface.dgrad_rate = layout_rate(dtype, GemmPass::kDgrad);
    surface.wgrad_rate = layout_rate(dtype, GemmPass::kWgrad);
    surface.layout_provenance = measured("gradient layouts");
    profile_.gemm.back() = surface;
  }

  // Median of the forward product's predicted time over the measured time.
  double layout_rate(DataType dtype, GemmPass pass) const {
    std::vector<double> ratios;
    for (const auto& [shape, seconds] : of<GemmShape>()) {
      if (shape.pass != pass || shape.dtype != dtype) continue;
      GemmShape forward = shape;
      forward.pass = GemmPass::kForward;
      ratios.push_back((gemm_cost(forward, profile_).time.seconds() - floor_) /
                       std::max(seconds - floor_, 1e-9));
    }
    return ratios.empty() ? 1.0 : std::clamp(median(ratios), 0.1, 10.0);
  }

  void attention() {
    std::map<std::tuple<AttentionPass, bool, int64_t>, std::map<double, std::vector<double>>> rates;
    for (const auto& [shape, seconds] : of<AttentionShape>()) {
      rates[{shape.pass, shape.mask_fraction < 1, shape.head_dim}]
           [static_cast<double>(shape.kv_tokens)]
               .push_back(shape.flops().count() / std::max(seconds - floor_, 0.5 * seconds));
    }
    AttentionKernel kernel{.name = backend_.facts().attention_kernels.empty()
                                       ? "own"
                                       : backend_.facts().attention_kernels.front(),
                           .floor = profile_.launch_floor};
    bool forward = false, backward = false;
    for (const auto& [key, at] : rates) {
      const auto [pass, causal, head_dim] = key;
      AttentionCurve curve{.pass = pass,
                           .causal = causal,
                           .head_dim = head_dim,
                           .provenance = measured("attention")};
      std::vector<LogCurve::Point> points;
      for (const auto& [tokens, values] : at) {
        double rate = median(values);
        // Work grows with the tokens; a rate that grew faster would make more work take less time.
        if (!points.empty())
          rate = std::min(rate, points.back().y * 0.999 * tokens / points.back().x);
        points.push_back({tokens, rate});
      }
      for (LogCurve::Point& p : points) p.y *= 1e-12;
      curve.measured_from = static_cast<int64_t>(points.front().x);
      curve.measured_to = static_cast<int64_t>(points.back().x);
      curve.teraflops = LogCurve(std::move(points));
      (pass == AttentionPass::kForward ? forward : backward) = true;
      kernel.curves.push_back(std::move(curve));
    }
    if (!forward || !backward) return missing("attention forward and backward");
    profile_.attention.push_back(std::move(kernel));
  }

  void streams() {
    std::array<std::map<double, double>, kStreamClasses> at;
    for (const auto& [traffic, seconds] : of<MemoryTraffic>()) {
      at[static_cast<size_t>(traffic.stream)][as_double(traffic.moved)] = seconds;
    }
    if (at[0].empty()) return missing("fused stream");
    for (size_t i = 0; i < kStreamClasses; ++i) {
      const bool own = !at[i].empty();
      profile_.stream[i].bytes_per_second = rates_over(own ? at[i] : at[0], floor_);
      profile_.stream[i].provenance = measured("streams");
      if (!own) profile_.stream[i].provenance.evidence = Evidence::kAssumed;
    }
    copies(at[0]);
  }

  void copies(const std::map<double, double>& fused_streams) {
    std::array<std::map<double, double>, 2> copies;
    for (const auto& [copy, seconds] : of<CopyProbe>())
      copies[copy.to_device ? 0 : 1][as_double(copy.bytes)] = seconds;
    for (size_t i = 0; i < 2; ++i) {
      const bool own = !copies[i].empty();
      profile_.host_copy[i].bytes_per_second = rates_over(own ? copies[i] : fused_streams, floor_);
      profile_.host_copy[i].provenance = measured("copies");
      if (!own) profile_.host_copy[i].provenance.evidence = Evidence::kAssumed;
    }
    std::array<std::map<double, double>, 2> to_peer;
    for (const auto& [copy, seconds] : of<PeerCopyProbe>())
      to_peer[copy.both_ways ? 1 : 0][as_double(copy.bytes)] = seconds;
    for (size_t i = 0; i < 2; ++i) {
      if (to_peer[i].empty()) continue;
      profile_.peer_copy[i] = {rates_over(to_peer[i], floor_),
                               measured("copies by " + backend_.facts().peer_link)};
    }
  }

  void collectives() {
    std::vector<CollectiveMeasurement> rows;
    for (const auto& [probe, seconds] : of<CollectiveProbe>()) {
      const int64_t ranks = probe.ranks > 0 ? probe.ranks : backend_.ranks();
      rows.push_back({.kind = probe.kind,
                      .ranks = ranks,
                      .nodes = backend_.nodes_of(ranks),
                      .size = probe.bytes,
                      .seconds = seconds});
    }
    constexpr double kTolerance = 0.01;
    if (!rows.empty())
      profile_.collectives = fit_collectives(rows, measured("collectives"), kTolerance);
  }

  // A product that lost so many of all SMs takes all / (all - lost) as long. Real collectives tell
  // more than a copy that stands for them.
  void sharing() {
    const auto all = static_cast<double>(profile_.sms);
    std::array<std::vector<double>, 2> lost;  // beside a copy, beside collectives
    for (const auto& [probe, beside] : of<SharingProbe>()) {
      for (const auto& [product, alone] : of<GemmShape>()) {
        if (probe_key(product) != probe_key(probe.product)) continue;
        lost[probe.collective.empty() ? 0 : 1].push_back(all * (1 - alone / beside) /
                                                         static_cast<double>(probe.sms));
      }
    }
    profile_.sharing_provenance = {Evidence::kAssumed,
                                   "the SMs of the transfer alone; not measured"};
    constexpr double kMost = 16;  // as a profile may hold
    for (const auto& [of_it, beside] : {std::pair(&lost[0], "products beside a copy"),
                                        std::pair(&lost[1], "products beside collectives")}) {
      if (of_it->empty()) continue;
      profile_.sms_lost_per_transfer_sm = std::clamp(median(*of_it), 0.0, kMost);
      profile_.sharing_provenance = measured(beside);
    }
  }

  const ProfileRequest& request_;
  const Backend& backend_;
  const std::vector<ProbeResult>& results_;
  DeviceProfile profile_;
  Faults faults_;
  double floor_ = 0;
};

}  // namespace

DeviceProfile profile_of_results(const ProfileRequest& request, const Backend& backend,
                                 const CalibrationResult& calibration) {
  return Builder(request, backend, calibration).build();
}

}  // namespace herdsim

#include "calibrate/profile/profile_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

// Decades of time: what is launch-bound, what is one wave, what fills the device.
std::string duration_band(double seconds) {
  if (seconds < 20e-6) return "below 20 us";
  if (seconds < 200e-6) return "20 to 200 us";
  if (seconds < 2e-3) return "200 us to 2 ms";
  return "beyond 2 ms";
}

std::string size_band(Bytes size) {
  if (size < mebibytes(1)) return "below 1 MiB";
  if (size < mebibytes(64)) return "1 to 64 MiB";
  return "64 MiB and more";
}

std::optional<AttentionKernelId> kernel_of(const DeviceProfile& profile,
                                           const std::string& printed) {
  if (const auto exact = profile.attention_kernel(printed)) return exact;
  for (size_t i = 0; i < profile.attention.size(); ++i) {
    if (printed.ends_with(profile.attention[AttentionKernelId(i)].name))
      return AttentionKernelId(i);
  }
  return std::nullopt;
}

class Checker {
 public:
  explicit Checker(const DeviceProfile& profile) : profile_(profile) {}

  void add(const GemmMeasurement& row) {
    add("products " + row.dtype, duration_band(row.seconds), gemm_cost(row.shape, profile_),
        row.seconds);
  }

  void add(const AttentionMeasurement& row) {
    const std::optional<AttentionKernelId> id = kernel_of(profile_, row.kernel);
    if (!id) return skip("attention kernel " + row.kernel);
    const std::string kind =
        fmt::format("attention {} {}", profile_.attention[*id].name,
                    row.shape.pass == AttentionPass::kForward ? "forward" : "backward");
    add(kind, duration_band(row.seconds), attention_cost(row.shape, *id, profile_), row.seconds);
  }

  void add(const StreamMeasurement& row) {
    constexpr std::array<std::string_view, kStreamClasses> kNames = {"fused", "framework",
                                                                     "optimizer"};
    add(fmt::format("streams {}", kNames[static_cast<size_t>(row.traffic.stream)]),
        size_band(row.traffic.moved), stream_cost(row.traffic, profile_), row.seconds);
  }

  void add(const CopyMeasurement& row) {
    using Kind = CopyMeasurement::Kind;
    constexpr std::array<std::string_view, 4> kNames = {"to the device", "to the host", "to a peer",
                                                        "to a peer and back"};
    const std::string kind = fmt::format("copies {}", kNames[static_cast<size_t>(row.kind)]);
    if (row.kind == Kind::kToDevice || row.kind == Kind::kToHost) {
      const auto way =
          row.kind == Kind::kToDevice ? HostDirection::kToDevice : HostDirection::kToHost;
      return add(kind, size_band(row.size), host_copy_cost(row.size, way, profile_), row.seconds);
    }
    const auto way = row.kind == Kind::kPeer ? PeerDirection::kOneWay : PeerDirection::kBothWays;
    if (profile_.peer_copy[static_cast<size_t>(way)].bytes_per_second.empty()) return skip(kind);
    add(kind, size_band(row.size), peer_copy_cost(row.size, way, profile_), row.seconds);
  }

  void add(const CollectiveMeasurement& row) {
    const CollectiveCurve* curve = profile_.collective(row.kind, row.ranks, row.nodes);
    if (curve == nullptr) {
      return skip(fmt::format("{} of {} ranks on {} nodes", row.kind, row.ranks, row.nodes));
    }
    KernelCost cost{.time = seconds_rounded_up(collective_seconds(*curve, row.size))};
    cost.extrapolated =
        row.size < curve->points.front().size || row.size > curve->points.back().size;
    add("collectives " + row.kind, size_band(row.size), cost, row.seconds);
  }

  ProfileCheck result() && {
    out_.errors = errors_.summaries();
    return std::move(out_);
  }

 private:
  void add(const std::string& kind, const std::string& band, const KernelCost& cost,
           double measured) {
    errors_.add(kind + ", all", cost.time.seconds(), measured);
    errors_.add(kind + ", " + band, cost.time.seconds(), measured);
    out_.extrapolated += cost.extrapolated ? 1 : 0;
  }

  void skip(std::string what) {
    if (std::find(out_.not_compared.begin(), out_.not_compared.end(), what) ==
        out_.not_compared.end()) {
      out_.not_compared.push_back(std::move(what));
    }
  }

  const DeviceProfile& profile_;
  ErrorTable errors_;
  ProfileCheck out_;
};

struct SizeTime {
  double size = 0;
  double seconds = 0;
};

}  // namespace

ProfileCheck check_profile(const DeviceProfile& profile, const Measurements& measurements) {
  Checker checker(profile);
  for (const GemmMeasurement& row : measurements.gemm) checker.add(row);
  for (const AttentionMeasurement& row : measurements.attention) checker.add(row);
  for (const StreamMeasurement& row : measurements.stream) checker.add(row);
  for (const CopyMeasurement& row : measurements.copy) checker.add(row);
  for (const CollectiveMeasurement& row : measurements.collective) checker.add(row);
  return std::move(checker).result();
}

double collective_seconds(const CollectiveCurve& curve, Bytes size) {
  const std::vector<CollectiveCurve::Point>& points = curve.points;
  const double x = static_cast<double>(size.count());
  const auto at = [&](size_t i) {
    return SizeTime{static_cast<double>(points[i].size.count()), points[i].time.seconds()};
  };
  if (points.size() == 1) return at(0).seconds * std::max(0.5, x / at(0).size);
  size_t upper = 1;
  while (upper + 1 < points.size() && points[upper].size < size) ++upper;
  const SizeTime a = at(upper - 1), b = at(upper);
  const double seconds = a.seconds + (b.seconds - a.seconds) * (x - a.size) / (b.size - a.size);
  return std::max(0.5 * at(0).seconds, seconds);
}

}  // namespace herdsim

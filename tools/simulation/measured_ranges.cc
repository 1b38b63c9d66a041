#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.h"
#include "tools/simulation/explanation.h"

namespace herdsim {
namespace {

std::string span_of(const LogAxis& axis) {
  return fmt::format("{} to {}", count_text(static_cast<int64_t>(axis.nodes().front())),
                     count_text(static_cast<int64_t>(axis.nodes().back())));
}

std::string products(const DeviceProfile& profile, DataType type) {
  const auto has = [type](const GemmSurface& surface) { return surface.dtype == type; };
  const auto found = std::find_if(profile.gemm.begin(), profile.gemm.end(), has);
  const GemmSurface& surface = found == profile.gemm.end() ? profile.gemm.front() : *found;
  const LogGrid3::Axes& axes = surface.nanoseconds.axes();
  return fmt::format("products with {} rows, {} columns and {} deep", span_of(axes[0]),
                     span_of(axes[1]), span_of(axes[2]));
}

std::string attention(const DeviceProfile& profile, const std::string& name) {
  const auto id = profile.attention_kernel(name);
  if (!id) return "";
  int64_t from = 0, to = 0;
  for (const AttentionCurve& curve : profile.attention[*id].curves) {
    if (curve.measured_to == 0) continue;
    from = from == 0 ? curve.measured_from : std::min(from, curve.measured_from);
    to = std::max(to, curve.measured_to);
  }
  return fmt::format("; attention ({}) of {} to {} tokens", name, count_text(from), count_text(to));
}

std::string streams(const DeviceProfile& profile) {
  const std::vector<LogCurve::Point>& points =
      profile.stream_of(StreamClass::kFused).bytes_per_second.points();
  return fmt::format("; streams of {} to {}",
                     to_text(Bytes(static_cast<int64_t>(points.front().x))),
                     to_text(Bytes(static_cast<int64_t>(points.back().x))));
}

}  // namespace

std::string measured_ranges(const Scenario& scenario) {
  return "Measured: " + products(scenario.profile, scenario.training.precision) +
         attention(scenario.profile, scenario.software.attention_kernel) +
         streams(scenario.profile) + ".";
}

}  // namespace herdsim

#include "tools/validation/table_gpus.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace herdsim {
namespace {

constexpr GpuRow kGpus[] = {
    {"H100-PCIe", "h100-pcie-80gb", 300, 200},
    {"GB200", "gb200-186gb", 900, 400, 0, 0, 72},
    {"GB300", "gb200-186gb", 900, 800, 8000, 279, 72, 0.95 / 0.784},
    {"B200", "b200-sxm-180gb", 900, 400},
    {"H100", "h100-sxm5-80gb", 450, 400, 0, 0, 0, 1, 4},
    {"H200", "h200-sxm-141gb", 450, 400, 0, 0, 0, 1, 4},
    {"H800", "h100-sxm5-80gb", 200, 400},
    {"A100-40GB", "a100-sxm4-80gb", 300, 200, 1555, 40},
    {"A100", "a100-sxm4-80gb", 300, 200},
    {"A800", "a100-sxm4-80gb", 200, 200},
};

}  // namespace

const GpuRow* find_gpu(std::string_view name) {
  for (const GpuRow& row : kGpus) {
    if (name.starts_with(row.name) &&
        (name.size() == row.name.size() || name[row.name.size()] == '-' || name == row.name)) {
      return &row;
    }
  }
  return nullptr;
}

std::span<const GpuRow> table_gpus() { return kGpus; }

void set_memory_rate(DeviceProfile& p, double factor) {
  const auto scaled = [](const StreamCurve& curve, double by) {
    std::vector<LogCurve::Point> points = curve.bytes_per_second.points();
    for (LogCurve::Point& point : points) point.y *= by;
    return StreamCurve{LogCurve(std::move(points)), curve.provenance};
  };
  StreamCurve& framework = p.stream[static_cast<size_t>(StreamClass::kFramework)];
  const StreamCurve& fused = p.stream[static_cast<size_t>(StreamClass::kFused)];
  const double at_most = factor * fused.bytes_per_second.points().back().y / framework.bytes_per_second.points().back().y;
  const double of_framework = factor < 1 ? std::min(1.0, at_most) : factor;
  for (StreamCurve& curve : p.stream) curve = scaled(curve, &curve == &framework ? of_framework : factor);
}

}  // namespace herdsim

#include "calibrate/fit/unfused_attention.h"

#include <cmath>
#include <string>

namespace herdsim {
namespace {

struct Pass {
  AttentionPass pass;
  double bytes;              // a score
  double flops_a_channel;    // a score
  double counted_a_channel;  // of AttentionShape::flops(), half the square
};
constexpr Pass kPasses[] = {{AttentionPass::kForward, 13, 4, 2},
                            {AttentionPass::kBackward, 19, 8, 5}};
constexpr double kOfPeak = 0.45;
constexpr int kLaunches = 5;

}  // namespace

AttentionKernel unfused_attention(const DeviceProfile& profile) {
  AttentionKernel kernel{.name = std::string(kUnfusedAttention)};
  kernel.floor = profile.launch_floor * kLaunches;
  const double stream = profile.stream_of(StreamClass::kFused).bytes_per_second.points().back().y;
  const double product = kOfPeak * profile.peak_of(DataType::kBf16).per_second();
  for (const int64_t head_dim : {64, 96, 128, 192, 256}) {
    const auto d = static_cast<double>(head_dim);
    for (const Pass& pass : kPasses) {
      const double seconds = pass.bytes / stream + pass.flops_a_channel * d / product;
      // Four figures, as a profile is written.
      const double rate = std::round(pass.counted_a_channel * d / seconds * 1e-10) / 100;
      AttentionCurve curve{.pass = pass.pass, .causal = true, .head_dim = head_dim};
      curve.teraflops = LogCurve({{512, rate}, {32768, rate}});
      curve.measured_from = 512;
      curve.measured_to = 32768;
      curve.provenance = {Evidence::kAssumed,
                          "counted bytes of the scores at the rate of fused streams, and products "
                          "at 45 % of the peak"};
      kernel.curves.push_back(std::move(curve));
    }
  }
  return kernel;
}

}  // namespace herdsim

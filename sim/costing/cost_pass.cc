#include "sim/costing/cost_pass.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <set>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// The measured fp8 products cast their own activations: a launch and, read in bf16 and written in fp8, 3 bytes an element.
Duration activation_cast(const GemmShape& shape, const DeviceProfile& profile) {
  constexpr double kLaunches = 9.5e-6;
  const double moved = 3.0 * static_cast<double>(shape.m) * static_cast<double>(shape.k);
  const double rate = profile.stream_of(StreamClass::kFused).bytes_per_second.points().back().y;
  return seconds_rounded_up(kLaunches + moved / rate);
}

// Rounded up. In ticks: through seconds and back, 3 ns would become 4.
Duration scaled(Duration time, double factor) {
  const double ticks = std::ceil(static_cast<double>(time.nanoseconds()) * factor);
  const auto most = static_cast<double>(Duration::infinite().nanoseconds());
  return ticks < most ? nanoseconds(static_cast<int64_t>(ticks)) : Duration::infinite();
}

struct KernelCoster {
  const DeviceProfile& profile;
  AttentionKernelId attention;
  double fp8_cast_share, fp8_product_slowdown;

  KernelCost operator()(const GemmShape& shape) const {
    KernelCost cost = gemm_cost(shape, profile);
    if (shape.dtype == DataType::kFp8 && fp8_cast_share < 1) {
      const Duration cast = seconds_rounded_up(activation_cast(shape, profile).seconds() *
                                               (1 - fp8_cast_share));
      cost.time = std::max(cost.time - cast, nanoseconds(cost.time.nanoseconds() / 2));
    }
    if (shape.dtype == DataType::kFp8 && fp8_product_slowdown != 1) {
      cost.time = scaled(cost.time, fp8_product_slowdown);
      cost.of_peak = Ratio(cost.of_peak.value() / fp8_product_slowdown);
    }
    return cost;
  }
  KernelCost operator()(const AttentionShape& shape) const {
    return attention_cost(shape, attention, profile);
  }
  KernelCost operator()(const MemoryTraffic& traffic) const {
    return stream_cost(traffic, profile);
  }
};

// Memory streams run at the memory's clock; products and attention at the cores'.
double clock_slowdown(const Kernel& kernel, double clock_factor) {
  return std::holds_alternative<MemoryTraffic>(kernel.work) ? 1.0 : 1.0 / clock_factor;
}

}  // namespace

double expected_slowest_sigmas(int64_t gpus) {
  if (gpus <= 1) return 0;
  const auto n = static_cast<double>(gpus);
  return boost::math::quantile(boost::math::normal(), (n - 0.375) / (n + 0.25));
}

CostedGraph cost_graph(const OpGraph& graph, const DeviceProfile& profile,
                       const SoftwareStack& software) {
  const auto attention = profile.attention_kernel(software.attention_kernel);
  HERDSIM_CHECK(attention.has_value()) << software.attention_kernel;
  const KernelCoster coster{profile, *attention, software.fp8_cast_share,
                            software.fp8_product_slowdown};
  const double sigmas = expected_slowest_sigmas(static_cast<int64_t>(graph.grid.ranks()));
  const double slowest = 1 + software.gpu_speed_sigma * sigmas;
  const double clock = profile.training_clock * software.clock_factor;
  CostedGraph costed;
  std::set<std::string> extrapolated;
  costed.works.reserve(graph.works.size());
  for (const Work& work : graph.works) {
    WorkCost cost;
    Duration device;
    for (const Kernel& kernel : work.kernels) {
      KernelLine line;
      line.cost = std::visit(coster, kernel.work);
      line.time = scaled(line.cost.time,
                         kernel.repeats * clock_slowdown(kernel, clock));
      cost.terms[static_cast<size_t>(kernel.term)] += line.time;
      device += line.time;
      if (kernel.uneven != Uneven::kNot) {
        cost.uneven = kernel.uneven;
        cost.uneven_time += line.time;
      }
      if (line.cost.extrapolated) extrapolated.insert(kernel.name);
      cost.kernels.push_back(line);
    }
    cost.total = scaled(device, slowest);
    cost.terms[static_cast<size_t>(TimeTerm::kStraggler)] = cost.total - device;
    if (cost.total < work.host_floor) {
      cost.terms[static_cast<size_t>(TimeTerm::kOther)] = work.host_floor - cost.total;
      cost.total = work.host_floor;
    }
    const Duration waited = scaled(work.jitter, sigmas);
    cost.terms[static_cast<size_t>(TimeTerm::kStraggler)] += waited;
    cost.total += waited;
    costed.works.push_back(std::move(cost));
  }
  for (const std::string& name : extrapolated) {
    costed.warnings.push_back("kernel '" + name + "' is outside the profile's measured range");
  }
  return costed;
}

}  // namespace herdsim

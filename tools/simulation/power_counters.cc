#include "tools/simulation/power_counters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/check.h"
#include "sim/models/clock_power.h"

namespace herdsim {
namespace {

constexpr int64_t kMostWindows = 250;
constexpr Duration kFinest = nanoseconds(1'000'000);

// Nanoseconds in which a kernel runs, by window.
using Busy = std::vector<int64_t>;

void add_busy(const Span& kernel, Duration window, Busy& busy) {
  const int64_t width = window.nanoseconds();
  const int64_t end = kernel.end.nanoseconds();
  for (int64_t at = kernel.begin.nanoseconds(); at < end;) {
    const int64_t next = std::min(end, (at / width + 1) * width);
    busy[static_cast<size_t>(at / width)] += next - at;
    at = next;
  }
}

// `watts` by window, as samples where they differ from the last one by `least`.
Counter as_counter(Counter counter, Duration window, const std::vector<double>& values,
                   double least) {
  for (size_t w = 0; w < values.size(); ++w) {
    const double value = std::round(values[w] / least) * least;
    if (!counter.samples.empty() && counter.samples.back().value == value) continue;
    counter.samples.push_back({Instant::start() + window * static_cast<int64_t>(w), value});
  }
  return counter;
}

}  // namespace

Duration power_window(Duration step) {
  return std::max(kFinest, nanoseconds((step.nanoseconds() + kMostWindows - 1) / kMostWindows));
}

void add_power(const DeviceProfile& profile, int64_t gpus, const std::vector<double>& clocks,
               StepTrace& trace) {
  HERDSIM_CHECK(clocks.size() == trace.ranks.size()) << "a clock for each traced rank";
  Instant last;
  for (const Span& span : trace.spans) last = std::max(last, span.end);
  const Duration step = last - Instant::start();
  if (step == Duration::zero()) return;
  const Duration window = power_window(step);
  const auto windows = static_cast<size_t>((step.nanoseconds() - 1) / window.nanoseconds() + 1);
  // The last window ends with the step.
  const auto length = [&](size_t w) {
    const Duration left = step - window * static_cast<int64_t>(w);
    return static_cast<double>(std::min(window, left).nanoseconds());
  };
  const double idle = std::min(ClockPowerModel().idle_w, profile.board_watts);
  std::vector<double> sum(windows);
  size_t first = 0;
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    const RankId rank = trace.ranks[r].rank;
    Busy busy(windows);
    for (; first < trace.spans.size() && trace.spans[first].rank == rank; ++first) {
      if (trace.spans[first].stream == Stream::kCompute) add_busy(trace.spans[first], window, busy);
    }
    std::vector<double> watts(windows);
    for (size_t w = 0; w < windows; ++w) {
      const double share = static_cast<double>(busy[w]) / length(w);
      watts[w] = idle + (profile.board_watts - idle) * share;
      sum[w] += watts[w];
    }
    trace.counters.push_back(
        as_counter({.rank = rank, .name = "power", .unit = "W", .samples = {}}, window, watts, 1));
    trace.counters.push_back({.rank = rank,
                              .name = "clock",
                              .unit = "% of the profile's",
                              .samples = {{Instant::start(), 100 * clocks[r]}}});
  }
  const double megawatts =
      static_cast<double>(gpus) / static_cast<double>(trace.ranks.size()) / 1e6;
  for (double& watts : sum) watts *= megawatts;
  trace.counters.push_back(as_counter({.of_cluster = true,
                                       .name = "power of all GPUs, as the traced ones",
                                       .unit = "MW",
                                       .samples = {}},
                                      window, sum, megawatts));
}

}  // namespace herdsim

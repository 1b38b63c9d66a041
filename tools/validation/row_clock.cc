#include "tools/validation/row_clock.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sim/models/clock_power.h"

namespace herdsim {
namespace {

constexpr double kStays = 1e-3;

PowerMix mix_of(const StepResult& step) {
  const std::array<double, kTimeTerms> account = step.time_account_seconds();
  const auto seconds = [&](TimeTerm term) { return account[static_cast<size_t>(term)]; };
  // Bubbles, and what the network alone carries, last too long to be made up for.
  return {.products = seconds(TimeTerm::kCompute) + seconds(TimeTerm::kOther),
          .memory = seconds(TimeTerm::kMemoryBound) + seconds(TimeTerm::kOptimizer),
          .waiting = seconds(TimeTerm::kExposedTp) + seconds(TimeTerm::kExposedCp) +
                     seconds(TimeTerm::kExposedEp)};
}

}  // namespace

double settled_clock(double first, const std::function<double(double)>& sustained) {
  double low = 0, high = 1;  // what sustains itself is between them
  double clock = first, difference = 1;
  bool follows = true;
  while (high >= kLeastClock && high - low > kStays * high) {
    const double next = sustained(clock);
    const double now = std::abs(next - clock);
    if (now < kStays * clock) return next < kLeastClock ? 0 : next;
    (next > clock ? low : high) = clock;
    follows = follows && now <= difference / 2 && next > 0 && low <= next && next <= high;
    difference = now;
    clock = follows ? next : (low + high) / 2;
  }
  return high < kLeastClock ? 0 : (low + high) / 2;
}

void settle_clock(RowScenario& row, MachineMemo& machines) {
  if (!row.power_cap) return;
  PowerCap& cap = *row.power_cap;
  double& factor = row.scenario.software.clock_factor;
  const double uncapped = factor / cap.clock_factor;
  cap.clock_factor = settled_clock(cap.clock_factor, [&](double clock) {
    factor = uncapped * clock;
    return clock_factor_of_mix(
        {.power_limit_w = cap.usual_watts}, cap.watts,
        mix_of(simulate_step(row.scenario, {.result_alone = true}, machines).result));
  });
  factor = uncapped * cap.clock_factor;
  if (cap.clock_factor == 0) {
    row.skipped_because = fmt::format("gpu_power_W: {:g} W of {:g} W leave the step no clock",
                                      cap.watts, cap.usual_watts);
  }
}

}  // namespace herdsim

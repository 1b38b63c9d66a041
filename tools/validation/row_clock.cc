#include "tools/validation/row_clock.h"

#include <array>
#include <cmath>

#include "sim/models/clock_power.h"

namespace herdsim {

void settle_clock(RowScenario& row, MachineMemo& machines) {
  if (!row.power_cap) return;
  PowerCap& cap = *row.power_cap;
  constexpr int kMostRounds = 5;
  constexpr double kStays = 1e-3;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::array<double, kTimeTerms> account =
        simulate_step(row.scenario, {.result_alone = true}, machines).result.time_account_seconds();
    const auto seconds = [&](TimeTerm term) { return account[static_cast<size_t>(term)]; };
    // Bubbles, and what the network alone carries, last too long to be made up for.
    const PowerMix mix{.products = seconds(TimeTerm::kCompute) + seconds(TimeTerm::kOther),
                       .memory = seconds(TimeTerm::kMemoryBound) + seconds(TimeTerm::kOptimizer),
                       .waiting = seconds(TimeTerm::kExposedTp) + seconds(TimeTerm::kExposedCp) +
                                  seconds(TimeTerm::kExposedEp)};
    const double factor = clock_factor_of_mix({.power_limit_w = cap.usual_watts}, cap.watts, mix);
    const double change = factor / cap.clock_factor;
    row.scenario.software.clock_factor *= change;
    cap.clock_factor = factor;
    if (std::abs(change - 1) < kStays) return;
  }
}

}  // namespace herdsim

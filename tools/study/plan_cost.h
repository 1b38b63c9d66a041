// What training to a number of tokens takes with a plan: days, money, energy, spares, checkpoints,
// and how far each may be off.
//
// The pace is that of a month of campaigns (failures, checkpoints, recovery) on the plan's step.
// Two kinds of doubt are kept apart: luck, the spread of single months; and assumptions, each input
// that nobody measured set to both ends of its range (sensitivity.h), gains and losses each added
// as a root of squares, since the inputs do not conspire.
//
//   money     rent: GPU-hours at a price. Bought: what is written off meanwhile (capital over its
//             years), and the electricity of the GPUs and what stands round them.
//   spares    hosts away for repair are the servers of M/G/infinity, so Poisson whatever the law of
//             repairs; spares cover them with the asked probability (sim/models/queueing.h). The
//             pace is that of a job with these spares, unless the question keeps the scenario's
//   interval  Daly's optimum for the time a checkpoint stops the job (sim/models/young_daly.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/study/sensitivity.h"

namespace herdsim {

struct Prices {
  double usd_per_gpu_hour = 0;     // rent; or bought:
  double capital_usd_per_gpu = 0;  // with its share of host and network
  double depreciation_years = 4;
  double usd_per_kwh = 0;

  bool is_given() const { return usd_per_gpu_hour > 0 || capital_usd_per_gpu > 0; }
};

// Power of the whole machine room over that of the GPUs alone. Assumed, 1.5 to 2: an H100 host
// draws up to 10.2 kW for 5.6 kW of GPUs (vendor), cooling a tenth to a quarter on top.
constexpr double kFacilityPowerFactor = 1.75;

// What one uncertain input alone makes of the days, at both ends of its range.
struct DaysBar {
  UncertainInput input;
  double days_low = 0, days_high = 0;  // at input.low and at input.high
};

struct PlanCost {
  double tokens = 0;
  double effective_training_time = 0, p05 = 0, p95 = 0;
  double days = 0;
  double days_by_luck_low = 0, days_by_luck_high = 0;
  double days_by_assumptions_low = 0, days_by_assumptions_high = 0;
  std::vector<DaysBar> assumptions;  // that move the days, the most first
  double gpu_hours = 0, dollars = 0;
  double gpu_megawatt_hours = 0, facility_megawatt_hours = 0;
  double facility_megawatts = 0;  // mean

  double unplanned_failures_a_day = 0;
  double hosts_away = 0;  // mean, for repair
  int64_t spares = 0;     // hosts, for the availability
  int64_t simulated_spares = 0;
  double availability = 0;
  double interval_s = 0;       // of checkpoints, as simulated; 0: none
  double daly_interval_s = 0;  // the optimum; 0 where nothing fails or saving stops nobody
};

struct CostQuestion {
  double tokens = 0;
  Prices prices;
  double availability = 0.99;    // chance that a failed host finds a spare waiting
  bool keep_spares = false;      // of the scenario; otherwise as many as the availability takes
  ScenarioVariant variant = {};  // of the scenario; empty: no range of the assumptions
  int threads = 1;
};

// `step` is that of the scenario. Throws: SpecError where it cannot run for weeks.
PlanCost cost_of(const Scenario& scenario, const StepResult& step, const CostQuestion& question);

double dollars_for(const Prices& prices, double gpus, double days, double facility_megawatt_hours);

}  // namespace herdsim

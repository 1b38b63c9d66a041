#include "tools/study/plan_cost.h"

#include <cmath>

#include "sim/job/campaign_spec.h"
#include "sim/models/queueing.h"
#include "sim/models/young_daly.h"

namespace herdsim {
namespace {

// Of the campaign that gives the pace of training.
constexpr double kCampaignDays = 30;
constexpr int64_t kCampaignReplicas = 8;
constexpr double kHoursAYear = 24 * 365.25;

// Mean number of hosts out for repair: rate times stay, by Little's law.
double hosts_away(const CampaignSpec& spec) {
  double away = 0;
  for (const CampaignClass& c : spec.classes) {
    const FailureClass& row = c.row;
    if (row.remedy != Remedy::kReplace) continue;
    const FailureDomains& machine = spec.request.machine;
    const double events = c.scale * row.rate_per_hour * static_cast<double>(machine.units(row.per));
    const double hosts =
        (1 - row.wider_share) * static_cast<double>(machine.hosts_lost(row.scope)) +
        row.wider_share * static_cast<double>(machine.hosts_lost(row.wider_scope));
    const RecoveryRequest& recovery = spec.request.recovery;
    const double bad = row.scope == Scope::kHost ? recovery.unmended_share : 0;
    const double again =
        bad * recovery.health_check_recall + (1 - bad) * recovery.health_check_false_alarm;
    const double stay = (row.mean_repair_seconds() + recovery.health_check_s) / (1 - again);
    away += events * hosts * stay / 3600;
  }
  return away;
}

// What a save stops the job for, and the optimum between two of them.
double daly_optimum(const CampaignSpec& spec) {
  const double rate = spec.unplanned_rate_per_hour();
  for (const CheckpointTier& tier : spec.checkpoints.tiers) {
    const double block = tier.block.seconds();
    if (tier.follows_interval && rate > 0 && block > 0) {
      return daly_interval({.mtbf = 3600 / rate, .write = block});
    }
  }
  return 0;
}

void add_assumptions(PlanCost& cost, const Sensitivity& s) {
  const PaceRange range = pace_range(s);
  cost.days_by_assumptions_low = cost.days / range.fastest;
  cost.days_by_assumptions_high = cost.days / range.slowest;
  for (const TornadoBar& bar : s.bars) {
    if (s.swing(bar) == 0) continue;
    const auto days = [&](const std::optional<Outlook>& end) {
      return end ? cost.days * s.base.tokens_per_second / end->tokens_per_second : cost.days;
    };
    cost.assumptions.push_back({bar.input, days(bar.low), days(bar.high)});
  }
}

}  // namespace

double dollars_for(const Prices& prices, double gpus, double days, double facility_megawatt_hours) {
  const double gpu_hours = gpus * days * 24;
  const double bought =
      prices.capital_usd_per_gpu > 0
          ? prices.capital_usd_per_gpu * gpu_hours / (prices.depreciation_years * kHoursAYear) +
                facility_megawatt_hours * 1e3 * prices.usd_per_kwh
          : 0;
  return gpu_hours * prices.usd_per_gpu_hour + bought;
}

PlanCost cost_of(const Scenario& asked, const StepResult& step, const CostQuestion& question) {
  const RunHorizon horizon{.days = kCampaignDays, .tokens = 0, .replicas = kCampaignReplicas};
  const CampaignSpec spec = resolve(campaign_request(asked, horizon, step.step_time));
  PlanCost cost;
  cost.hosts_away = hosts_away(spec);
  cost.availability = question.availability;
  cost.spares = poisson_quantile(cost.hosts_away, question.availability);
  cost.simulated_spares = question.keep_spares ? asked.recovery.spares : cost.spares;
  const auto with_spares = [&](Scenario scenario) {
    scenario.recovery.spares = cost.simulated_spares;
    return scenario;
  };
  const Scenario scenario = with_spares(asked);
  const RunResult run = run_scenario(scenario, step, horizon, {.threads = question.threads});
  cost.tokens = question.tokens;
  cost.effective_training_time = run.effective_training_time();
  cost.p05 = run.effective_training_time_quantile(0.05);
  cost.p95 = run.effective_training_time_quantile(0.95);
  cost.days = run.days_to_tokens(question.tokens);
  cost.days_by_luck_low = cost.days * cost.effective_training_time / cost.p95;
  cost.days_by_luck_high = cost.days * cost.effective_training_time / cost.p05;
  cost.days_by_assumptions_low = cost.days_by_assumptions_high = cost.days;
  if (question.variant) {
    add_assumptions(
        cost,
        sensitivity(
            [&](const std::string& set) { return with_spares(question.variant(set)); },
            {.horizon = horizon, .weeks_of_failures_only = true, .threads = question.threads}));
  }
  const auto gpus = static_cast<double>(scenario.gpus);
  const double hours = cost.days * 24;
  cost.gpu_hours = gpus * hours;
  cost.gpu_megawatt_hours =
      run.gpu_energy_megawatt_hours() * hours * 3600 / run.mean_horizon_seconds();
  cost.facility_megawatt_hours = cost.gpu_megawatt_hours * kFacilityPowerFactor;
  cost.facility_megawatts = hours > 0 ? cost.facility_megawatt_hours / hours : 0;
  cost.dollars = dollars_for(question.prices, gpus, cost.days, cost.facility_megawatt_hours);
  cost.unplanned_failures_a_day = 24 * spec.unplanned_rate_per_hour();
  cost.interval_s = spec.checkpoints.tiers.empty() ? 0 : spec.request.checkpoint.interval_s;
  cost.daly_interval_s = daly_optimum(spec);
  return cost;
}

}  // namespace herdsim

#include "sim/job/campaign_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.h"
#include "sim/job/hbm_copies.h"
#include "sim/job/request_numbers.h"
#include "sim/models/young_daly.h"

namespace herdsim {
namespace {

constexpr double kDay = 86'400;
// A replica of more disturbances would take long, and nothing trains at such rates: a year of
// 131,072 GPUs has 23,000.
constexpr double kMostEvents = 1e6;

struct IntervalRuleRow {
  std::string_view name;
  IntervalRule rule;
};

const std::vector<IntervalRuleRow>& interval_rule_rows() {
  static const std::vector<IntervalRuleRow> rows = [] {
    std::vector<IntervalRuleRow> all;
    for (size_t i = 0; i < kIntervalRuleNames.size(); ++i)
      all.push_back({.name = kIntervalRuleNames[i], .rule = static_cast<IntervalRule>(i)});
    return all;
  }();
  return rows;
}

// The rows a request names; null where it names none that exists.
struct Policies {
  const CheckpointPolicy* checkpoint = nullptr;
  const RecoveryPolicy* recovery = nullptr;
  const IntervalRuleRow* rule = nullptr;
};

Policies find_policies(const CampaignRequest& r, Faults& faults) {
  return {.checkpoint =
              find_row(checkpoint_policies(), r.checkpoint.policy, "checkpoint.policy", faults),
          .recovery = find_row(recovery_policies(), r.recovery.policy, "recovery.policy", faults),
          .rule = find_row(interval_rule_rows(), r.checkpoint.rule, "checkpoint.rule", faults)};
}

// What was asked for and has nothing to act on: accepted, but said.
void warn_of_idle_fields(const CampaignSpec& spec, std::vector<std::string>& warnings) {
  const ReliabilityRequest& r = spec.request.reliability;
  const ReliabilityRequest defaults;
  const RecoveryRequest& recovery = spec.request.recovery;
  const RecoveryRequest recovery_defaults;
  const auto any_class = [&](auto&& predicate) {
    return std::any_of(spec.classes.begin(), spec.classes.end(), [&](const CampaignClass& c) {
      return c.row.rate_per_hour * c.scale > 0 && predicate(c.row);
    });
  };
  const bool weibull =
      any_class([](const FailureClass& row) { return row.law.shape == ArrivalShape::kWeibull; });
  const bool corruption =
      any_class([](const FailureClass& row) { return row.effect == Effect::kCorruption; });
  const bool power = any_class([](const FailureClass& row) {
    return row.scope == Scope::kPowerDomain || row.per == Exposure::kPowerDomain;
  });
  const bool day = std::any_of(spec.slow.begin(), spec.slow.end(), [](const CampaignSlow& s) {
    return s.row.kind == SlowKind::kDiurnalClock && s.scale > 0;
  });
  struct Idle {
    bool asked, acts;
    std::string_view text;
  };
  for (const Idle& idle : {
           Idle{r.weibull_k != defaults.weibull_k, weibull,
                "reliability.weibull_k: no class has the law weibull"},
           Idle{r.lemon_factor != defaults.lemon_factor || r.remove_lemons, r.lemon_share > 0,
                "reliability.lemon_factor: there are no lemons without reliability.lemon_share"},
           Idle{r.failure_rate_while_down != 1, r.restarts_can_fail,
                "reliability.failure_rate_while_down: reliability.restarts_can_fail is false, so "
                "nothing fails meanwhile"},
           Idle{r.failure_rate_per_kelvin != 0, day,
                "reliability.failure_rate_per_kelvin: no slow part diurnal_clock says how warm it "
                "is"},
           Idle{r.power_cap_w > 0, r.power_cap_w < spec.request.board_watts,
                "reliability.power_cap_w: the GPU draws no more than that anyway"},
           Idle{r.hosts_per_power_domain != defaults.hosts_per_power_domain, power,
                "reliability.hosts_per_power_domain: no class power_domain fails"},
           Idle{recovery.health_check_recall != recovery_defaults.health_check_recall ||
                    recovery.refail_after_s != recovery_defaults.refail_after_s,
                recovery.unmended_share > 0,
                "recovery.health_check_recall, refail_after_s: recovery.unmended_share is 0, so every "
                "host comes back sound"},
           Idle{spec.request.checkpoint.keep_last > 0, corruption,
                "checkpoint.keep_last: nothing corrupts state silently, so the newest is enough"},
       }) {
    if (idle.asked && !idle.acts)
      warnings.push_back(std::string(idle.text) + ", so this changes nothing");
  }
}

// Warnings of a resolved campaign, in the order they are shown.
std::vector<std::string> warnings_of(const CampaignSpec& spec) {
  std::vector<std::string> warnings = spec.checkpoints.warnings;
  const double rate = spec.unplanned_rate_per_hour();
  if (spec.checkpoints.tiers.empty() && rate > 0) {
    warnings.push_back("checkpoint.policy: nothing is saved, so every failure starts the run over");
  }
  const int64_t hosts = spec.request.machine.hosts();
  if (spec.request.recovery.spares > hosts) {
    warnings.push_back(fmt::format(
        "recovery.spares: {} spare hosts are more than the {} of the job; its GPU-hours do not "
        "count them",
        spec.request.recovery.spares, hosts));
  }
  warn_of_idle_fields(spec, warnings);
  return warnings;
}

// One measured restart takes the place of everything on the way up.
void apply_measured_restart(CampaignSpec& spec) {
  const double restart = spec.request.recovery.restart_s;
  if (restart <= 0) return;
  PhaseTimes& phases = spec.request.recovery.phases;
  phases = {.diagnosis_s = 0,
            .reschedule_s = 0,
            .start_s = restart,
            .init_s = 0,
            .warmup_s = 0,
            .maintenance_s = phases.maintenance_s};
  // A tick: zero means that it follows from size and bandwidth.
  spec.request.checkpoint.storage.measured_load_s = 1e-9;
  for (CampaignClass& c : spec.classes) {
    if (c.row.diagnosis_seconds > 0) c.row.diagnosis_seconds = 0;
    if (c.row.effect == Effect::kStop) c.row.detection.mean_seconds = 0;
  }
}

// Times beyond would add up to more than the clock holds. A store that never ends a save counts as 36,500 days.
void check_length_of_moves(const CheckpointPlan& plan) {
  constexpr Duration kLongest = days(40'000);
  Faults faults;
  for (const CheckpointTier& tier : plan.tiers) {
    const std::string_view medium = kMediumNames[static_cast<size_t>(tier.medium)];
    const Duration save = std::max(tier.block, tier.persist);
    require(save <= kLongest, "checkpoint.storage",
            fmt::format("a save to the {} takes {:.3g} s", medium, save.seconds()),
            "bandwidths and times that end it within 40,000 days", faults);
    require(tier.load <= kLongest, "checkpoint.storage",
            fmt::format("a load from the {} takes {:.3g} s", medium, tier.load.seconds()),
            "bandwidths and times that end it within 40,000 days", faults);
  }
  faults.throw_if_any();
}

// A store that all saves of the horizon, or the last ones that are asked for, do not fit into keeps those that do.
void keep_what_fits(CampaignSpec& spec) {
  CheckpointRequest& c = spec.request.checkpoint;
  const double one = static_cast<double>(c.bytes.count()) * c.storage.bytes_kept_per_byte;
  const double fit = std::max(1.0, std::floor(c.storage.capacity_petabytes * 1e15 / one));
  for (const CheckpointTier& tier : spec.checkpoints.tiers) {
    if (tier.medium != Medium::kRemote) continue;
    const Duration period = spec.request.nominal_step * tier.period_steps;
    const double made = c.keep_last > 0 ? static_cast<double>(c.keep_last)
                        : spec.horizon.is_finite() ? spec.horizon.seconds() / period.seconds()
                                                   : 0;
    if (made <= fit) continue;
    c.keep_last = static_cast<int64_t>(fit);
    spec.warnings.push_back(
        fmt::format("checkpoint.keep_last: the store of {:g} PB holds {} saves, {} of training; older ones are removed",
                    c.storage.capacity_petabytes, c.keep_last, to_text(period * c.keep_last)));
  }
}

int64_t steps_for(double tokens, int64_t tokens_per_step) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::ceil(tokens / static_cast<double>(tokens_per_step))));
}

void check_number_of_events(const CampaignSpec& spec) {
  double rate = 0;
  for (const CampaignClass& c : spec.classes) {
    rate += c.row.rate_per_hour * std::max(1.0, c.scale) *
            static_cast<double>(spec.request.machine.units(c.row.per));
  }
  Duration horizon = spec.horizon;
  if (spec.target_steps > 0)
    horizon = std::min(horizon, spec.request.nominal_step * spec.target_steps * kLongestOverIdeal);
  Faults faults;
  const auto limit = [&](double rate_per_hour, std::string field, std::string_view what) {
    const double count = rate_per_hour * horizon.seconds() / 3600;
    require(count <= kMostEvents, field, fmt::format("{:.2g} {} in one replica", count, what),
            fmt::format("rates and a horizon that give up to {:.0e}", kMostEvents), faults);
  };
  limit(rate, "reliability.rate_scale", "failures");
  for (const CampaignSlow& slow : spec.slow) {
    if (slow.row.kind != SlowKind::kEpisodes) continue;
    limit(slow.row.rate_per_hour * std::max(1.0, slow.scale) *
              static_cast<double>(spec.request.machine.units(slow.row.per)),
          fmt::format("reliability.slow.{}.rate_per_hour", slow.row.name), "episodes");
  }
  faults.throw_if_any();
}

}  // namespace

double CampaignSpec::unplanned_rate_per_hour() const {
  return herdsim::unplanned_rate_per_hour(classes, request.machine, recovery.rail_failover);
}

Duration interval_by_rule(IntervalRule rule, Duration fixed, Duration block, double mtbf_seconds) {
  const CheckpointProblem problem{.mtbf = mtbf_seconds, .write = block.seconds()};
  switch (rule) {
    case IntervalRule::kFixed:
      return fixed;
    case IntervalRule::kYoung:
    case IntervalRule::kAdaptive:
      return seconds_rounded_up(young_interval(problem));
    case IntervalRule::kDaly:
      return seconds_rounded_up(daly_interval(problem));
  }
  return fixed;
}

void append_faults(const CampaignRequest& r, Faults& faults) {
  append_number_faults(r, faults);
  find_policies(r, faults);
  campaign_classes(r.reliability, r.machine, faults);
  campaign_slow_parts(r.reliability, faults);
  campaign_detectors(r.reliability, faults);
}

CampaignSpec resolve(const CampaignRequest& r) {
  Faults faults;
  append_machine_faults(r, faults);
  append_faults(r, faults);
  faults.throw_if_any();

  CampaignSpec spec;
  spec.request = r;
  spec.request.machine.hosts_per_power_domain = r.reliability.hosts_per_power_domain;
  const FailureDomains& machine = spec.request.machine;
  spec.classes = campaign_classes(r.reliability, machine, faults);
  spec.slow = campaign_slow_parts(r.reliability, faults);
  spec.detectors = campaign_detectors(r.reliability, faults);
  apply_measured_restart(spec);
  const Policies policies = find_policies(r, faults);
  spec.recovery = *policies.recovery;
  spec.interval_rule = policies.rule->rule;
  if (r.run.days > 0) spec.horizon = seconds_rounded_up(r.run.days * kDay);
  if (r.run.tokens > 0) spec.target_steps = steps_for(r.run.tokens, r.tokens_per_step);
  check_number_of_events(spec);
  const CheckpointSize size{.total = r.checkpoint.bytes,
                            .gpus = machine.gpus,
                            .gpus_per_host = machine.gpus_per_host,
                            .data_parallel = r.data_parallel};
  Duration interval = seconds_rounded_up(r.checkpoint.interval_s);
  const double rate = spec.unplanned_rate_per_hour();
  const StorageModel& storage = spec.request.checkpoint.storage;
  if (spec.interval_rule != IntervalRule::kFixed && rate > 0) {
    const CheckpointPlan costs = plan_checkpoints(*policies.checkpoint, interval, size, storage,
                                                  r.nominal_step, r.checkpoint.others);
    for (const CheckpointTier& tier : costs.tiers) {
      if (tier.follows_interval)
        interval = interval_by_rule(spec.interval_rule, interval, tier.block, 3600 / rate);
    }
  }
  spec.checkpoints = plan_checkpoints(*policies.checkpoint, interval, size, storage, r.nominal_step,
                                      r.checkpoint.others);
  settle_hbm_copies(spec);
  check_length_of_moves(spec.checkpoints);
  spec.warnings = warnings_of(spec);
  keep_what_fits(spec);
  return spec;
}

}  // namespace herdsim

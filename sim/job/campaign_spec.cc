#include "sim/job/campaign_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/models/young_daly.h"
#include "sim/reliability/reliability_base.h"

namespace herdsim {
namespace {

constexpr double kDay = 86'400;

// Looks a name up in a table of rows; a fault with the nearest name where it is not there.
template <class Row>
const Row* find_row(const std::vector<Row>& rows, const std::string& name, std::string_view field,
                    Faults& faults) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.name == name) return &row;
    names.emplace_back(row.name);
  }
  faults.add({.field = std::string(field),
              .problem = fmt::format("there is no \"{}\"", name),
              .allowed = fmt::format("{}", fmt::join(names, ", ")),
              .nearest = nearest_name(name, names)});
  return nullptr;
}

template <class Enum, size_t N>
std::optional<Enum> find_enum(const std::array<std::string_view, N>& names, const std::string& name,
                              std::string_view field, Faults& faults) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  const std::vector<std::string> all(names.begin(), names.end());
  faults.add({.field = std::string(field),
              .problem = fmt::format("there is no \"{}\"", name),
              .allowed = fmt::format("{}", fmt::join(all, ", ")),
              .nearest = nearest_name(name, all)});
  return std::nullopt;
}

void require(bool good, std::string_view field, std::string problem, std::string_view allowed,
             Faults& faults) {
  if (good) return;
  faults.add({.field = std::string(field),
              .problem = std::move(problem),
              .allowed = std::string(allowed)});
}

void require_at_least_zero(double value, std::string_view field, Faults& faults) {
  require(value >= 0 && std::isfinite(value), field,
          fmt::format("{:g} is not a finite number of 0 or more", value), "0 or more", faults);
}

void check_machine_and_run(const CampaignRequest& r, Faults& faults) {
  require(r.machine.gpus > 0, "gpus", fmt::format("{} is not positive", r.machine.gpus),
          "1 or more", faults);
  require(r.machine.gpus_per_host > 0 && r.machine.gpus_per_tor > 0 && r.machine.gpus_per_pod > 0,
          "cluster", "a host, ToR or pod of no GPUs", "1 or more", faults);
  require(r.nominal_step > Duration::zero() && r.nominal_step.is_finite(), "step",
          "the step time is not a positive number", "a positive time", faults);
  require_at_least_zero(r.days, "run.days", faults);
  require_at_least_zero(r.tokens, "run.tokens", faults);
  require(r.days > 0 || r.tokens > 0, "run.days",
          "the horizon is zero: neither days nor tokens are given", "more than 0 days or tokens",
          faults);
  require(r.tokens <= 0 || r.tokens_per_step > 0, "run.tokens", "a step trains no tokens", "",
          faults);
  require(r.replicas > 0, "run.replicas", fmt::format("{} is not positive", r.replicas),
          "1 or more", faults);
  require(r.data_parallel > 0, "parallel.dp", fmt::format("{} is not positive", r.data_parallel),
          "1 or more", faults);
}

void check_reliability(const CampaignRequest& r, Faults& faults) {
  require_at_least_zero(r.rate_scale, "reliability.rate_scale", faults);
  require(r.weibull_k > 0.2 && r.weibull_k <= 10, "reliability.weibull_k",
          fmt::format("{:g}", r.weibull_k), "above 0.2, at most 10", faults);
  require(r.lemon_share >= 0 && r.lemon_share < 1, "reliability.lemon_share",
          fmt::format("{:g}", r.lemon_share), "0 to below 1", faults);
  require(r.lemon_factor >= 1, "reliability.lemon_factor", fmt::format("{:g}", r.lemon_factor),
          "1 or more", faults);
  require_at_least_zero(r.evict_slow_after_s, "reliability.evict_slow_after_s", faults);
  require_at_least_zero(r.power_cap_w, "reliability.power_cap_w", faults);
  require(std::abs(r.failure_rate_per_kelvin) <= 0.1, "reliability.failure_rate_per_kelvin",
          fmt::format("{:g}", r.failure_rate_per_kelvin), "-0.1 to 0.1", faults);
}

void check_checkpoint_and_recovery(const CampaignRequest& r, Faults& faults) {
  require(r.checkpoint_interval_s > 0 && std::isfinite(r.checkpoint_interval_s),
          "checkpoint.interval_s", fmt::format("{:g} is not positive", r.checkpoint_interval_s),
          "more than 0 seconds", faults);
  require_at_least_zero(static_cast<double>(r.keep_last), "checkpoint.keep_last", faults);
  require(r.archive_every_s > 0, "checkpoint.archive_every_s",
          fmt::format("{:g} is not positive", r.archive_every_s), "more than 0 seconds", faults);
  require(r.checkpoint_bytes > Bytes(0), "checkpoint.bytes", "a checkpoint of no bytes",
          "1 or more", faults);
  const StorageModel& s = r.storage;
  require(s.write_gb_per_s > 0 && s.read_gb_per_s > 0 && s.shared_cap_gb_per_s > 0 &&
              s.copy_out_gb_per_s_per_gpu > 0 && s.peer_gb_per_s_per_gpu > 0 &&
              s.nvme_gb_per_s_per_host > 0,
          "checkpoint.storage", "a bandwidth of zero never finishes", "more than 0 GB/s", faults);
  require(s.background_share >= 0 && s.background_share < 1, "checkpoint.storage.background_share",
          fmt::format("{:g}", s.background_share), "0 to below 1", faults);
  require(r.spares >= 0, "recovery.spares", fmt::format("{} is below zero", r.spares), "0 or more",
          faults);
  require(r.machine.gpus <= 0 || r.spares <= r.machine.hosts(), "recovery.spares",
          fmt::format("{} spare hosts for a job of {}", r.spares, r.machine.hosts()),
          "at most as many as the job has", faults);
  require(r.technicians >= 0, "recovery.technicians",
          fmt::format("{} is below zero", r.technicians), "0 or more", faults);
  require_at_least_zero(r.health_check_s, "recovery.health_check_s", faults);
  const PhaseTimes& p = r.phases;
  for (const auto& [value, field] :
       {std::pair{p.diagnosis_s, "recovery.diagnosis_s"},
        std::pair{p.reschedule_s, "recovery.reschedule_s"},
        std::pair{p.start_s, "recovery.start_s"}, std::pair{p.init_s, "recovery.init_s"},
        std::pair{p.warmup_s, "recovery.warmup_s"},
        std::pair{p.maintenance_s, "recovery.maintenance_s"}}) {
    require_at_least_zero(value, field, faults);
  }
}

void apply_override(const ClassOverride& change, std::vector<CampaignClass>& classes,
                    Faults& faults) {
  const std::string field = "reliability.classes." + change.name;
  const FailureClass* row = find_row(failure_classes(), change.name, "reliability.classes", faults);
  if (row == nullptr) return;
  auto place = std::find_if(classes.begin(), classes.end(),
                            [&](const CampaignClass& c) { return c.row.name == change.name; });
  if (place == classes.end()) place = classes.insert(classes.end(), CampaignClass{.row = *row});
  if (change.rate_per_hour) {
    require_at_least_zero(*change.rate_per_hour, field + ".rate_per_hour", faults);
    place->row.rate_per_hour = *change.rate_per_hour;
  }
  if (change.scale) {
    require_at_least_zero(*change.scale, field + ".scale", faults);
    place->scale *= *change.scale;
  }
  if (!change.law.empty()) {
    if (const auto shape =
            find_enum<ArrivalShape>(kArrivalShapeNames, change.law, field + ".law", faults)) {
      place->row.law.shape = *shape;
      require(*shape != ArrivalShape::kEmpirical || !change.gaps.empty(), field + ".law",
              "an empirical law needs a failure log", "a log", faults);
    }
  }
  if (!change.gaps.empty()) {
    place->row.law.shape = ArrivalShape::kEmpirical;
    place->row.law.gaps = change.gaps;
    std::sort(place->row.law.gaps.begin(), place->row.law.gaps.end());
  }
}

std::vector<CampaignClass> resolve_classes(const CampaignRequest& r, const ReliabilityBase& base,
                                           Faults& faults) {
  std::vector<CampaignClass> classes;
  for (FailureClass& row : classes_of(base)) classes.push_back({.row = std::move(row)});
  if (!r.law.empty()) {
    if (const auto shape =
            find_enum<ArrivalShape>(kArrivalShapeNames, r.law, "reliability.law", faults)) {
      require(*shape == ArrivalShape::kExponential || *shape == ArrivalShape::kWeibull ||
                  *shape == ArrivalShape::kClustered,
              "reliability.law", "not a law for every class", "exponential, weibull, clustered",
              faults);
      for (CampaignClass& c : classes) {
        if (c.row.law.shape != ArrivalShape::kScheduled) c.row.law.shape = *shape;
      }
    }
  }
  for (const ClassOverride& change : r.classes) apply_override(change, classes, faults);
  for (CampaignClass& c : classes) {
    c.scale *= r.rate_scale;
    c.row.law.weibull_k = r.weibull_k;
  }
  return classes;
}

int64_t steps_for(double tokens, int64_t tokens_per_step) {
  return std::max<int64_t>(
      1, static_cast<int64_t>(std::ceil(tokens / static_cast<double>(tokens_per_step))));
}

}  // namespace

std::vector<ClassOverride> overrides_of(const FailureLog& log) {
  std::vector<ClassOverride> changes;
  for (const LoggedClass& entry : log.classes) {
    changes.push_back(
        {.name = entry.name, .rate_per_hour = entry.rate_per_hour, .gaps = entry.gaps_seconds});
  }
  return changes;
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

double CampaignSpec::unplanned_rate_per_hour() const {
  std::vector<FailureClass> rows;
  for (const CampaignClass& c : classes) {
    rows.push_back(c.row);
    rows.back().rate_per_hour *= c.scale;
  }
  return herdsim::unplanned_rate_per_hour(rows, request.machine);
}

CampaignSpec resolve(const CampaignRequest& r) {
  Faults faults;
  check_machine_and_run(r, faults);
  check_reliability(r, faults);
  check_checkpoint_and_recovery(r, faults);
  const auto or_none = [](const std::string& name) {
    return name.empty() ? std::string("none") : name;
  };
  const auto* base =
      find_row(reliability_bases(), or_none(r.reliability_base), "reliability.base", faults);
  const auto* policy =
      find_row(checkpoint_policies(), or_none(r.checkpoint_policy), "checkpoint.policy", faults);
  const auto* recovery = find_row(
      recovery_policies(), r.recovery_policy.empty() ? "restart-with-spares" : r.recovery_policy,
      "recovery.policy", faults);
  const auto rule =
      find_enum<IntervalRule>(kIntervalRuleNames, r.interval_rule, "checkpoint.rule", faults);

  CampaignSpec spec;
  spec.request = r;
  if (base != nullptr) {
    spec.classes = resolve_classes(r, *base, faults);
    for (const SlowComponent& row : slow_components_of(*base)) spec.slow.push_back({.row = row});
  }
  for (const std::string& name : r.slow) {
    if (const auto* row = find_row(slow_components(), name, "reliability.slow", faults))
      spec.slow.push_back({.row = *row});
  }
  for (const std::string& name : r.corruption_detectors) {
    const auto* row =
        find_row(corruption_detectors(), name, "reliability.corruption_detectors", faults);
    if (row != nullptr) spec.detectors.push_back(*row);
  }
  faults.throw_if_any();

  spec.recovery = *recovery;
  spec.interval_rule = *rule;
  if (r.days > 0) spec.horizon = seconds_rounded_up(r.days * kDay);
  if (r.tokens > 0) spec.target_steps = steps_for(r.tokens, r.tokens_per_step);
  const CheckpointSize size{.total = r.checkpoint_bytes,
                            .gpus = r.machine.gpus,
                            .gpus_per_host = r.machine.gpus_per_host,
                            .data_parallel = r.data_parallel};
  Duration interval = seconds_rounded_up(r.checkpoint_interval_s);
  const double rate = spec.unplanned_rate_per_hour();
  if (spec.interval_rule != IntervalRule::kFixed && rate > 0) {
    const CheckpointPlan costs =
        plan_checkpoints(*policy, interval, size, r.storage, r.nominal_step);
    for (const CheckpointTier& tier : costs.tiers) {
      if (tier.follows_interval)
        interval = interval_by_rule(spec.interval_rule, interval, tier.block, 3600 / rate);
    }
  }
  spec.checkpoints = plan_checkpoints(*policy, interval, size, r.storage, r.nominal_step);
  spec.warnings = spec.checkpoints.warnings;
  if (spec.checkpoints.tiers.empty() && rate > 0) {
    spec.warnings.push_back(
        "checkpoint.policy: nothing is saved, so every failure starts the run over");
  }
  return spec;
}

}  // namespace herdsim

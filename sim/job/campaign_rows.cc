#include "sim/job/campaign_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>

#include "sim/reliability/reliability_base.h"

namespace herdsim {
namespace {

// "NIC link" is also nic_link and Nic-Link.
std::string plain(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_' || c == '-') c = ' ';
  }
  return text;
}

template <class Enum, size_t N>
std::optional<Enum> find_enum(const std::array<std::string_view, N>& names, const std::string& name,
                              std::string field, Faults& faults) {
  std::vector<std::string> all;
  for (size_t i = 0; i < N; ++i) {
    if (plain(names[i]) == plain(name)) return static_cast<Enum>(i);
    all.push_back(plain(names[i]));
  }
  faults.add({.field = std::move(field),
              .problem = fmt::format("there is no \"{}\"", name),
              .allowed = fmt::format("{}", fmt::join(all, ", ")),
              .nearest = nearest_name(plain(name), all)});
  return std::nullopt;
}

bool stops_unplanned(const FailureClass& row) {
  return row.effect == Effect::kStop || row.effect == Effect::kCorruption;
}

// One changed class: what was given is applied where it has an effect, and is a fault elsewhere.
class ClassChange {
 public:
  ClassChange(const ClassOverride& change, size_t index, const FailureDomains& machine,
              Faults& faults)
      : change_(change),
        path_(fmt::format("reliability.classes[{}].", index)),
        machine_(machine),
        faults_(faults) {}

  void apply(CampaignClass& c) {
    FailureClass& row = c.row;
    kind(row);
    law(row.law);
    rate(row);
    if (change_.scale) c.scale *= *change_.scale;
    times(row);
  }

 private:
  void fault(std::string_view field, std::string problem, std::string allowed = "") {
    faults_.add({.field = path_ + std::string(field),
                 .problem = std::move(problem),
                 .allowed = std::move(allowed)});
  }

  void kind(FailureClass& row) {
    const auto choose = [&](auto& target, const std::string& name, const auto& names,
                            const char* field) {
      if (name.empty()) return;
      using Enum = std::remove_reference_t<decltype(target)>;
      if (const auto found = find_enum<Enum>(names, name, path_ + field, faults_)) target = *found;
    };
    choose(row.effect, change_.effect, kEffectNames, "effect");
    choose(row.per, change_.per, kExposureNames, "per");
    if (!change_.scope.empty()) {
      choose(row.scope, change_.scope, kScopeNames, "scope");
      row.wider_share = 0;
      if (!stops_unplanned(row)) fault("scope", "only a stop or a corruption takes hosts away");
    }
    if (!change_.remedy.empty()) {
      choose(row.remedy, change_.remedy, kRemedyNames, "remedy");
      if (!stops_unplanned(row)) fault("remedy", "only a stop or a corruption needs one");
    }
  }

  void law(ArrivalLaw& law) {
    if (!change_.law.empty()) {
      if (const auto shape =
              find_enum<ArrivalShape>(kArrivalShapeNames, change_.law, path_ + "law", faults_)) {
        if (*shape == ArrivalShape::kEmpirical && law.gaps.empty()) {
          fault("law", "an empirical law needs reliability.failure_log",
                "exponential, weibull, clustered, scheduled");
        } else {
          law.shape = *shape;
        }
      }
    }
    const auto only_for = [&](const std::optional<double>& value, double& target,
                              ArrivalShape shape, const char* field) {
      if (!value) return;
      target = *value;
      if (law.shape == shape) return;
      fault(field,
            fmt::format("the law of this class is {}",
                        kArrivalShapeNames[static_cast<size_t>(law.shape)]),
            fmt::format("only with law: {}", kArrivalShapeNames[static_cast<size_t>(shape)]));
    };
    only_for(change_.weibull_k, law.weibull_k, ArrivalShape::kWeibull, "weibull_k");
    only_for(change_.branching, law.branching, ArrivalShape::kClustered, "branching");
    only_for(change_.mean_lag_s, law.mean_lag_seconds, ArrivalShape::kClustered, "mean_lag_s");
  }

  void rate(FailureClass& row) {
    const int given = int{change_.rate_per_hour.has_value()} + int{change_.mtbf_h.has_value()} +
                      int{change_.per_1000_node_days.has_value()};
    if (given > 1) {
      fault(change_.rate_per_hour ? "rate_per_hour" : "mtbf_h", "one rate in two ways",
            "one of rate_per_hour, mtbf_h, per_1000_node_days");
    }
    for (const auto& [value, field] : {std::pair{change_.rate_per_hour, "rate_per_hour"},
                                       {change_.mtbf_h, "mtbf_h"},
                                       {change_.per_1000_node_days, "per_1000_node_days"},
                                       {change_.scale, "scale"}}) {
      if (value && !(*value >= 0))
        fault(field, fmt::format("{:g} is below zero", *value), "0 or more");
    }
    if (change_.rate_per_hour) row.rate_per_hour = std::max(0.0, *change_.rate_per_hour);
    if (change_.mtbf_h && *change_.mtbf_h > 0) row.rate_per_hour = 1 / *change_.mtbf_h;
    if (change_.per_1000_node_days) {
      row.rate_per_hour = std::max(0.0, *change_.per_1000_node_days) / 24'000 *
                          static_cast<double>(machine_.hosts()) /
                          static_cast<double>(machine_.units(row.per));
    }
  }

  void times(FailureClass& row) {
    if (change_.detection_s) {
      row.detection.mean_seconds = *change_.detection_s;
      if (row.effect == Effect::kPlannedStop) fault("detection_s", "a planned stop is known ahead");
    }
    if (change_.diagnosis_s) {
      row.diagnosis_seconds = *change_.diagnosis_s;
      if (row.effect == Effect::kPlannedStop || row.effect == Effect::kStorageOutage)
        fault("diagnosis_s", "a planned stop or an outage needs none");
    }
    if (!change_.repair_s) return;
    row.repair = {
        .shape = DurationShape::kLognormal, .mean_seconds = *change_.repair_s, .parameter = 0.7};
    row.quick_share = 0;
    if (row.remedy != Remedy::kReplace || row.scope == Scope::kJob || !stops_unplanned(row)) {
      fault("repair_s", "no host leaves for repair",
            "only with remedy: replace and a scope of a host or more");
    }
  }

  const ClassOverride& change_;
  const std::string path_;
  const FailureDomains& machine_;
  Faults& faults_;
};

std::vector<CampaignClass>::iterator place_of(std::vector<CampaignClass>& classes,
                                              std::string_view name) {
  return std::find_if(classes.begin(), classes.end(),
                      [&](const CampaignClass& c) { return c.row.name == name; });
}

// A class that the table does not know: it says what it does and how often, and is a restart of the
// job that somebody notices at once where it says nothing else.
std::optional<FailureClass> own_class(const ClassOverride& change, size_t index, Faults& faults) {
  if (change.effect.empty()) {
    find_row(failure_classes(), change.name, fmt::format("reliability.classes[{}].name", index),
             faults);
    faults.list().back().allowed += "; or a class of your own, with an effect";
    return std::nullopt;
  }
  if (!change.rate_per_hour && !change.mtbf_h && !change.per_1000_node_days) {
    faults.add({.field = fmt::format("reliability.classes[{}].rate_per_hour", index),
                .problem = "a class of your own needs a rate",
                .allowed = "rate_per_hour, mtbf_h or per_1000_node_days"});
    return std::nullopt;
  }
  FailureClass row;
  row.name = change.name;
  row.help = "defined in the scenario";
  row.remedy = change.repair_s ? Remedy::kReplace : Remedy::kRestart;
  row.scope = change.repair_s ? Scope::kHost : Scope::kJob;
  row.rate_evidence = Evidence::kAssumed;
  row.source = "the scenario";
  return row;
}

void apply_changes(const ReliabilityRequest& r, const FailureDomains& machine,
                   std::vector<CampaignClass>& classes, Faults& faults) {
  for (size_t i = 0; i < r.classes.size(); ++i) {
    const ClassOverride& change = r.classes[i];
    auto place = place_of(classes, change.name);
    if (place == classes.end()) {
      const FailureClass* known = find_failure_class(change.name);
      const auto row = known != nullptr ? std::optional(*known) : own_class(change, i, faults);
      if (!row) continue;
      place = classes.insert(classes.end(), CampaignClass{.row = *row});
    }
    ClassChange(change, i, machine, faults).apply(*place);
  }
}

void apply_law_of_all(const ReliabilityRequest& r, std::vector<CampaignClass>& classes,
                      Faults& faults) {
  for (CampaignClass& c : classes) c.row.law.weibull_k = r.weibull_k;
  if (r.law.empty()) return;
  const auto shape = find_enum<ArrivalShape>(kArrivalShapeNames, r.law, "reliability.law", faults);
  if (!shape) return;
  if (*shape == ArrivalShape::kScheduled || *shape == ArrivalShape::kEmpirical) {
    faults.add({.field = "reliability.law",
                .problem = "not a law for every class",
                .allowed = "exponential, weibull, clustered"});
    return;
  }
  for (CampaignClass& c : classes) {
    if (c.row.law.shape != ArrivalShape::kScheduled) c.row.law.shape = *shape;
  }
}

void apply_log(const ReliabilityRequest& r, std::vector<CampaignClass>& classes) {
  for (const LoggedClass& entry : r.log) {
    const FailureClass* row = find_failure_class(entry.name);
    auto place = place_of(classes, entry.name);
    if (place == classes.end()) place = classes.insert(classes.end(), CampaignClass{.row = *row});
    place->row.rate_per_hour = entry.rate_per_hour;
    place->row.law.shape = ArrivalShape::kEmpirical;
    place->row.law.gaps = entry.gaps_seconds;
    std::sort(place->row.law.gaps.begin(), place->row.law.gaps.end());
  }
}

// What stops the job unplanned adds up to the total that the user knows, in the mix it has.
void apply_total(const ReliabilityRequest& r, const FailureDomains& machine,
                 std::vector<CampaignClass>& classes, Faults& faults) {
  const int given =
      int{r.gpu_mtbf_h > 0} + int{r.failures_per_1000_node_days > 0} + int{r.job_mtbf_h > 0};
  if (given == 0) return;
  if (given > 1) {
    faults.add({.field = r.gpu_mtbf_h > 0 ? "reliability.gpu_mtbf_h"
                                          : "reliability.failures_per_1000_node_days",
                .problem = "one total in two ways",
                .allowed = "one of gpu_mtbf_h, failures_per_1000_node_days, job_mtbf_h"});
    return;
  }
  const double hosts = static_cast<double>(machine.hosts());
  const double total = r.gpu_mtbf_h > 0   ? static_cast<double>(machine.gpus) / r.gpu_mtbf_h
                       : r.job_mtbf_h > 0 ? 1 / r.job_mtbf_h
                                          : r.failures_per_1000_node_days / 24'000 * hosts;
  const double now = unplanned_rate_per_hour(classes, machine, false);
  if (now > 0) {
    for (CampaignClass& c : classes) {
      if (stops_unplanned(c.row)) c.row.rate_per_hour *= total / now;
    }
    return;
  }
  FailureClass row = *find_failure_class("node_failure");
  row.rate_per_hour = total / hosts;
  classes.push_back({.row = row});
}

void apply_slow(const SlowOverride& change, size_t index, CampaignSlow& slow, Faults& faults) {
  const auto only_for = [&](const std::optional<double>& value, double& target, bool applies,
                            const char* field) {
    if (!value) return;
    target = *value;
    if (applies) return;
    faults.add({.field = fmt::format("reliability.slow[{}].{}", index, field),
                .problem = fmt::format("{} is of the kind \"{}\"", slow.row.name,
                                       kSlowKindNames[static_cast<size_t>(slow.row.kind)]),
                .allowed = "scale, which every kind has; see herdsim help slow"});
  };
  SlowComponent& row = slow.row;
  const bool episodes = row.kind == SlowKind::kEpisodes;
  only_for(change.rate_per_hour, row.rate_per_hour, episodes, "rate_per_hour");
  only_for(change.duration_s, row.duration.mean_seconds, episodes, "duration_s");
  only_for(change.share, row.share, row.kind == SlowKind::kSlowHosts, "share");
  only_for(change.slowdown, row.mean_slowdown, row.kind != SlowKind::kDiurnalClock, "slowdown");
  if (change.scale) slow.scale *= *change.scale;
}

}  // namespace

bool traffic_moves(const FailureClass& row, bool takes_tor, const FailureDomains& machine,
                   bool rail_failover) {
  if (row.effect != Effect::kStop && row.effect != Effect::kStall) return false;
  if (row.on_one_plane && machine.planes > 1) return true;
  return rail_failover && row.on_network_rail && (!takes_tor || machine.rails > 1);
}

double stopping_share(const FailureClass& row, const FailureDomains& machine, bool rail_failover) {
  if (!stops_unplanned(row)) return 0;
  const auto stops = [&](Scope scope) {
    return traffic_moves(row, scope == Scope::kTor, machine, rail_failover) ? 0.0 : 1.0;
  };
  return (1 - row.wider_share) * stops(row.scope) + row.wider_share * stops(row.wider_scope);
}

double unplanned_rate_per_hour(const std::vector<CampaignClass>& classes,
                               const FailureDomains& machine, bool rail_failover) {
  std::vector<FailureClass> rows;
  for (const CampaignClass& c : classes) {
    rows.push_back(c.row);
    rows.back().rate_per_hour *= c.scale * stopping_share(c.row, machine, rail_failover);
  }
  return unplanned_rate_per_hour(rows, machine);
}

std::vector<CampaignClass> campaign_classes(const ReliabilityRequest& r,
                                            const FailureDomains& machine, Faults& faults) {
  std::vector<CampaignClass> classes;
  const auto* base = find_row(reliability_bases(), r.base, "reliability.base", faults);
  if (base != nullptr) {
    for (FailureClass& row : classes_of(*base)) classes.push_back({.row = std::move(row)});
  }
  apply_law_of_all(r, classes, faults);
  apply_log(r, classes);
  apply_changes(r, machine, classes, faults);
  apply_total(r, machine, classes, faults);
  for (CampaignClass& c : classes) c.scale *= r.rate_scale;
  return classes;
}

std::vector<CampaignSlow> campaign_slow_parts(const ReliabilityRequest& r, Faults& faults) {
  std::vector<CampaignSlow> slow;
  // An unknown base has been reported with its classes.
  if (const ReliabilityBase* base = find_reliability_base(r.base)) {
    for (const SlowComponent& row : slow_components_of(*base)) slow.push_back({.row = row});
  }
  for (size_t i = 0; i < r.slow.size(); ++i) {
    auto place = std::find_if(slow.begin(), slow.end(),
                              [&](const CampaignSlow& s) { return s.row.name == r.slow[i].name; });
    if (place == slow.end()) {
      const auto* row = find_row(slow_components(), r.slow[i].name,
                                 fmt::format("reliability.slow[{}].name", i), faults);
      if (row == nullptr) continue;
      place = slow.insert(slow.end(), CampaignSlow{.row = *row});
    }
    apply_slow(r.slow[i], i, *place, faults);
  }
  return slow;
}

std::vector<CorruptionDetector> campaign_detectors(const ReliabilityRequest& r, Faults& faults) {
  std::vector<CorruptionDetector> detectors;
  for (size_t i = 0; i < r.corruption_detectors.size(); ++i) {
    const std::string& name = r.corruption_detectors[i];
    const std::string field = fmt::format("reliability.corruption_detectors[{}]", i);
    if (name == "none") {
      if (r.corruption_detectors.size() == 1) return {};
      faults.add({.field = field, .problem = "none, among others", .allowed = "none alone"});
      continue;
    }
    const auto* row = find_row(corruption_detectors(), name, field, faults);
    const bool twice =
        std::find(r.corruption_detectors.begin(),
                  r.corruption_detectors.begin() + static_cast<ptrdiff_t>(i),
                  name) != r.corruption_detectors.begin() + static_cast<ptrdiff_t>(i);
    if (twice) faults.add({.field = field, .problem = fmt::format("{} is there twice", name)});
    if (row != nullptr) detectors.push_back(*row);
  }
  return detectors;
}

}  // namespace herdsim

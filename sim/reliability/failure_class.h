// What goes wrong: one row a kind of failure, with how often, how far it reaches, how it is noticed
// and mended.
//
// Rates are per unit and hour, never periods: a part that fails once in 6,000 years is
// representable and rates add up. The 18 causes of the Llama 3 run carry the counts of its Table 5
// over the exposure of its window, 16,384 GPUs for 54 days (21,233,664 GPU-hours); the percentages
// printed there do not add up and are not used. Each row says how good its numbers are and where
// they come from; detection and repair times are not in that paper.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/provenance.h"
#include "sim/reliability/law.h"

namespace herdsim {

// What one event does to the job.
enum class Effect : uint8_t {
  kStop,           // the job stops and recovers
  kPlannedStop,    // known ahead: a checkpoint first, no work lost
  kStall,          // transfers wait; above the retry budget it is a stop
  kCorruption,     // wrong results that nobody sees for a while
  kStorageOutage,  // nothing becomes durable and nothing loads until it ends
};
constexpr std::array<std::string_view, 5> kEffectNames = {"stop", "planned stop", "stall",
                                                          "silent corruption", "storage outage"};

// What a failure takes away at once: the blast radius, looked up in the machine's failure domains.
enum class Scope : uint8_t { kJob, kHost, kTor, kPowerDomain, kPod };
constexpr size_t kScopes = 5;
constexpr std::array<std::string_view, kScopes> kScopeNames = {"job", "host", "ToR", "power domain",
                                                               "pod"};

// What a rate counts: the exposure is how many of these the job uses.
enum class Exposure : uint8_t { kJob, kGpu, kHost, kNicLink, kTor, kPowerDomain, kPod };
constexpr std::array<std::string_view, 7> kExposureNames = {
    "job", "GPU", "host", "NIC link", "ToR", "power domain", "pod"};

// What brings the job back.
enum class Remedy : uint8_t {
  kRestart,  // no part is at fault
  kReplace,  // the hosts leave for repair and others take their place
};
constexpr std::array<std::string_view, 2> kRemedyNames = {"restart", "replace"};

// From where to where an assumed rate may be, as what multiplies it. No publication counts these failures a
// part-hour: where one bounds them, the source says how; the rest is a guess of its width. Sensitivity studies vary a
// rate in its range.
struct RateRange {
  double low = 1, high = 1;  // over the rate of the row
  std::string_view source;
};

struct FailureClass {
  std::string name;  // a user's own classes have names of their own
  std::string_view help;
  Effect effect = Effect::kStop;
  Exposure per = Exposure::kGpu;
  double rate_per_hour = 0;
  ArrivalLaw law;

  Scope scope = Scope::kHost;
  double wider_share = 0;  // of the events, this share takes `wider_scope` instead
  Scope wider_scope = Scope::kTor;
  bool on_network_rail = false;  // a job that can move traffic to other rails survives it
  bool on_one_plane = false;     // so does a fabric whose NICs have ports on several ToRs

  // Time to notice; of a stall or an outage, how long it lasts; of a corruption, the latency of the
  // loss watch.
  RandomDuration detection;
  double diagnosis_seconds = -1;  // below 0: as the campaign's
  Remedy remedy = Remedy::kReplace;
  // Away for repair: `quick_share` of the hosts need `quick_repair_seconds` (a reset, an automatic
  // repair), the others `repair`.
  RandomDuration repair;
  double quick_share = 0;
  double quick_repair_seconds = 0;

  Evidence rate_evidence = Evidence::kPublished;
  std::optional<RateRange> rate_range = {};  // of an assumed rate
  Evidence detection_evidence = Evidence::kAssumed;
  Evidence repair_evidence = Evidence::kAssumed;
  std::string_view source;

  // Mean of the mixture.
  double mean_repair_seconds() const {
    return quick_share * quick_repair_seconds + (1 - quick_share) * repair.mean_seconds;
  }
};

// 16,384 GPUs for 54 days.
constexpr double kLlama3GpuHours = 16'384.0 * 54 * 24;

// Every class, in the order of reports. Rows outside a base's list never happen unless it names
// them.
const std::vector<FailureClass>& failure_classes();
// Null if there is none of that name.
const FailureClass* find_failure_class(std::string_view name);

// How many units of each kind a job of `gpus` GPUs uses.
struct FailureDomains {
  int64_t gpus = 0;
  int64_t gpus_per_host = 8;
  int64_t gpus_per_tor = 16;  // NICs under one ToR; of one rail where there are several
  int64_t gpus_per_pod = 3072;
  int64_t hosts_per_power_domain = 16;  // assumed: one busway's racks
  int64_t rails = 1;                    // ToRs over which the NICs of a host are spread, in order
  int64_t planes = 1;                   // ports of a NIC, each on a ToR of its own

  int64_t hosts() const { return (gpus + gpus_per_host - 1) / gpus_per_host; }
  int64_t units(Exposure per) const;
  // Hosts that one event of this scope takes; never more than the job has, 0 for the job itself.
  int64_t hosts_lost(Scope scope) const;
  // Those whose NIC is under the ToR of this one, as if the job filled the machine in order.
  std::vector<int64_t> gpus_under_tor_of(int64_t gpu) const;
};

}  // namespace herdsim

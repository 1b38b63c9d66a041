// catalog, help: what there is, printed from the tables themselves.
#include "tools/herdsim/catalog_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "sim/base/table.h"
#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/collectives/collective.h"
#include "sim/job/recovery_policy.h"
#include "sim/reliability/corruption_detector.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/reliability_base.h"
#include "sim/reliability/slow_component.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"
#include "topologies/cluster.h"
#include "topologies/routing.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {
namespace {

struct Entry {
  std::string name, help;
};

// A kind of `herdsim catalog`.
struct Kind {
  std::string name;
  std::vector<Entry> (*entries)();
};

template <CatalogKind kKind>
std::vector<Entry> catalog_files() {
  std::vector<Entry> entries;
  for (const CatalogEntry& entry : catalog_entries(kKind)) {
    entries.push_back({std::string(entry.name), std::string(entry.help())});
  }
  return entries;
}

std::vector<Entry> profile_entries() {
  std::vector<Entry> entries;
  for (const std::string& name : profile_names()) {
    entries.push_back({name, load_profile(name).device});
  }
  return entries;
}

std::vector<Entry> schedule_entries() {
  std::vector<Entry> entries;
  for (const ScheduleRow& row : schedules()) {
    entries.push_back({std::string(row.name), fmt::format("{} ({})", row.help, row.source)});
  }
  return entries;
}

// Of a table whose rows have a name and a help.
template <auto kTable>
std::vector<Entry> named_rows() {
  std::vector<Entry> entries;
  for (const auto& row : kTable()) {
    entries.push_back({std::string(row.name), std::string(row.help)});
  }
  return entries;
}

std::vector<Entry> routing_entries() {
  std::vector<Entry> entries;
  for (const Routing& row : routings()) {
    entries.push_back({std::string(row.name),
                       fmt::format("{} ({}: {})", row.help,
                                   evidence_name(row.provenance.evidence), row.provenance.source)});
  }
  return entries;
}

std::vector<Entry> placement_entries() {
  std::vector<Entry> entries;
  for (const Placement& row : placements()) {
    entries.push_back({std::string(row.name), fmt::format("{} ({})", row.help, row.source)});
  }
  return entries;
}

std::vector<Entry> failure_entries() {
  std::vector<Entry> entries;
  for (const FailureClass& row : failure_classes()) {
    entries.push_back({std::string(row.name),
                       fmt::format("{} Rate {}: {}", row.help, evidence_name(row.rate_evidence),
                                   row.source)});
  }
  return entries;
}

std::vector<Entry> policy_entries() {
  std::vector<Entry> entries;
  for (const CheckpointPolicy& row : checkpoint_policies()) {
    entries.push_back({fmt::format("checkpoint {}", row.name), std::string(row.help)});
  }
  for (const RecoveryPolicy& row : recovery_policies()) {
    entries.push_back({fmt::format("recovery {}", row.name), std::string(row.help)});
  }
  return entries;
}

std::string collective_help(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "NVLS in a host, NVLSTree, trees or rings across hosts, whichever NCCL predicts to be "
             "faster; measured to 5 % in a host, to 15 % from 32 to 8,192 GPUs from 64 MiB.";
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return "Rings; PAT with one rank a host since NCCL 2.23. Loads NICs as often as the ring "
             "passes them.";
    case CollectiveKind::kAllToAll:
      return "Pairwise exchange; an uplink carries what leaves the part of the group below it.";
    case CollectiveKind::kBroadcast:
      return "A ring that every byte passes once.";
    case CollectiveKind::kSendRecv:
      return "One message between two GPUs: pipeline stages.";
  }
  return "";
}

std::vector<Entry> collective_entries() {
  std::vector<Entry> entries;
  for (size_t k = 0; k < kCollectiveKinds; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    entries.push_back({std::string(collective_kind_name(kind)), collective_help(kind)});
  }
  return entries;
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"scenarios", &catalog_files<CatalogKind::kScenarios>},
      {"models", &catalog_files<CatalogKind::kModels>},
      {"clusters", &catalog_files<CatalogKind::kClusters>},
      {"software", &catalog_files<CatalogKind::kSoftware>},
      {"profiles", &profile_entries},
      {"topologies", &named_rows<&topologies>},
      {"routing", &routing_entries},
      {"placement", &placement_entries},
      {"schedules", &schedule_entries},
      {"collectives", &collective_entries},
      {"failures", &failure_entries},
      {"slow", &named_rows<&slow_components>},
      {"detectors", &named_rows<&corruption_detectors>},
      {"reliability", &named_rows<&reliability_bases>},
      {"policies", &policy_entries},
  };
  return kKinds;
}

const Kind& kind_of(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  Fault fault;
  fault.field = "catalog";
  fault.problem = fmt::format("there is no kind \"{}\"", name);
  fault.allowed = fmt::format("{}", fmt::join(names, ", "));
  fault.nearest = nearest_name(name, names);
  throw SpecError({fault});
}

void print_kinds(const std::vector<const Kind*>& shown, const Options& options, Streams streams) {
  if (options.format == OutputFormat::kJson) {
    nlohmann::ordered_json all;
    for (const Kind* kind : shown) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const Entry& entry : kind->entries()) {
        list.push_back({{"name", entry.name}, {"help", entry.help}});
      }
      all[kind->name] = list;
    }
    fmt::print(streams.out, "{}\n", all.dump(2));
    return;
  }
  for (const Kind* kind : shown) {
    TextTable table({{kind->name}, {"what it is", Align::kWrap}});
    for (const Entry& entry : kind->entries()) table.add_row({entry.name, entry.help});
    fmt::print(streams.out, "{}{}", kind == shown.front() ? "" : "\n", table.text());
  }
}

}  // namespace

int run_catalog_command(const Options& options, Streams streams) {
  std::vector<const Kind*> shown;
  for (const std::string& name : options.names) shown.push_back(&kind_of(name));
  if (shown.empty()) {
    for (const Kind& kind : kinds()) shown.push_back(&kind);
  }
  print_kinds(shown, options, streams);
  return kExitDone;
}

int run_help_command(const Options& options, Streams streams) {
  if (options.names.front() == "spec") {
    fmt::print(streams.out, "{}", scenario_language_help());
    return kExitDone;
  }
  print_kinds({&kind_of(options.names.front())}, options, streams);
  return kExitDone;
}

}  // namespace herdsim

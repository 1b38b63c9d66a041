// catalog, help: what there is, printed from the tables themselves.
#include "tools/herdsim/catalog_commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/profile/profile_file.h"
#include "sim/base/error.h"
#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/collective_phases.h"
#include "sim/job/recovery_policy.h"
#include "sim/reliability/corruption_detector.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/reliability_base.h"
#include "sim/reliability/slow_component.h"
#include "tools/herdsim/load_options.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"
#include "topologies/cluster.h"
#include "topologies/routing.h"
#include "topologies/switch_buffers.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {
namespace {

// A kind of `herdsim catalog`.
struct Kind {
  std::string name;
  std::vector<CatalogLine> (*entries)();
};

template <CatalogKind kKind>
std::vector<CatalogLine> catalog_files() {
  std::vector<CatalogLine> entries;
  for (const CatalogEntry& entry : catalog_entries(kKind)) {
    entries.push_back({std::string(entry.name), std::string(entry.help())});
  }
  return entries;
}

std::vector<CatalogLine> profile_entries() {
  std::vector<CatalogLine> entries;
  for (const std::string& name : profile_names()) {
    entries.push_back({name, load_profile(name).device});
  }
  return entries;
}

std::vector<CatalogLine> schedule_entries() {
  std::vector<CatalogLine> entries;
  for (const ScheduleRow& row : schedules()) {
    entries.push_back({std::string(row.name), fmt::format("{} ({})", row.help, row.source)});
  }
  return entries;
}

// Of a table whose rows have a name and a help.
template <auto kTable>
std::vector<CatalogLine> named_rows() {
  std::vector<CatalogLine> entries;
  for (const auto& row : kTable()) {
    entries.push_back({std::string(row.name), std::string(row.help)});
  }
  return entries;
}

template <class Row>
CatalogLine entry_with_source(const Row& row, std::string_view kind) {
  return {std::string(row.name),
          fmt::format("{}{} ({}: {})", kind, row.help, evidence_name(row.provenance.evidence),
                      row.provenance.source)};
}

std::vector<CatalogLine> routing_entries() {
  std::vector<CatalogLine> entries;
  for (const Routing& row : routings()) entries.push_back(entry_with_source(row, ""));
  for (const SwitchBuffers& row : switch_buffers()) {
    entries.push_back(entry_with_source(row, "cluster.buffers: "));
  }
  return entries;
}

std::vector<CatalogLine> placement_entries() {
  std::vector<CatalogLine> entries;
  for (const Placement& row : placements()) {
    entries.push_back({std::string(row.name), fmt::format("{} ({})", row.help, row.source)});
  }
  return entries;
}

std::string in_words(double seconds) {
  if (seconds < 600) return fmt::format("{:.3g} s", seconds);
  if (seconds < 3 * 86'400.0) return fmt::format("{:.3g} h", seconds / 3600);
  return fmt::format("{:.3g} days", seconds / 86'400);
}

// "6.97e-06 an hour and GPU, exponential; noticed in 10 s; host out for 40.4 h".
std::string failure_figures(const FailureClass& row) {
  std::string text = fmt::format("{:.3g} an hour and {}, {}", row.rate_per_hour,
                                 kExposureNames[static_cast<size_t>(row.per)],
                                 kArrivalShapeNames[static_cast<size_t>(row.law.shape)]);
  const double detection = row.detection.mean_seconds;
  switch (row.effect) {
    case Effect::kStop:
      text += fmt::format("; noticed in {}", in_words(detection));
      break;
    case Effect::kCorruption:
      text += fmt::format("; the loss shows it after {}", in_words(detection));
      break;
    case Effect::kStall:
    case Effect::kStorageOutage:
      text += fmt::format("; {} for {}", kEffectNames[static_cast<size_t>(row.effect)],
                          in_words(detection));
      break;
    case Effect::kPlannedStop:
      text += "; planned, so no work is lost";
      break;
  }
  if (row.scope != Scope::kJob)
    text += fmt::format("; {} out for {}", kScopeNames[static_cast<size_t>(row.scope)],
                        in_words(row.mean_repair_seconds()));
  if (row.wider_share > 0) {
    text += fmt::format(" ({:.1f} %: a whole {})", 100 * row.wider_share,
                        kScopeNames[static_cast<size_t>(row.wider_scope)]);
  }
  return text;
}

std::vector<CatalogLine> failure_entries() {
  std::vector<CatalogLine> entries;
  for (const FailureClass& row : failure_classes()) {
    entries.push_back(
        {row.name,
         fmt::format("{}: {}. Rate {} ({}), detection {}, repair {}", row.help,
                     failure_figures(row), evidence_name(row.rate_evidence), row.source,
                     evidence_name(row.detection_evidence), evidence_name(row.repair_evidence))});
  }
  return entries;
}

std::string with_source(std::string text, Evidence evidence, std::string_view source) {
  if (!source.empty()) text += fmt::format(" ({}: {})", evidence_name(evidence), source);
  return text;
}

std::vector<CatalogLine> slow_entries() {
  std::vector<CatalogLine> entries;
  for (const SlowComponent& row : slow_components()) {
    std::string text =
        fmt::format("{} ({})", row.help, kSlowKindNames[static_cast<size_t>(row.kind)]);
    if (row.kind == SlowKind::kEpisodes) {
      text += fmt::format(": {:.3g} an hour and {}, {} long", row.rate_per_hour,
                          kExposureNames[static_cast<size_t>(row.per)],
                          in_words(row.duration.mean_seconds));
    }
    if (row.kind == SlowKind::kSlowHosts) text += fmt::format(": share {:g}", row.share);
    if (row.mean_slowdown > 0) text += fmt::format(", slowdown {:g}", row.mean_slowdown);
    entries.push_back({std::string(row.name), with_source(text, row.evidence, row.source)});
  }
  return entries;
}

std::vector<CatalogLine> detector_entries() {
  std::vector<CatalogLine> entries;
  for (const CorruptionDetector& row : corruption_detectors()) {
    std::string text = fmt::format(
        "{}: sees {:g} % of wrong arithmetic, {:g} % of corrupted transfers; {}; costs {:g} % of a "
        "step",
        row.help, 100 * row.arithmetic_recall, 100 * row.transfer_recall,
        row.latency.mean_seconds > 0 ? "after " + in_words(row.latency.mean_seconds)
                                     : std::string("after the class's own latency"),
        100 * row.step_overhead);
    entries.push_back({std::string(row.name), with_source(text, row.evidence, row.source)});
  }
  return entries;
}

std::vector<CatalogLine> policy_entries() {
  std::vector<CatalogLine> entries;
  for (const CheckpointPolicy& row : checkpoint_policies()) {
    entries.push_back({fmt::format("checkpoint {}", row.name),
                       with_source(std::string(row.help), row.evidence, row.source)});
  }
  for (const RecoveryPolicy& row : recovery_policies()) {
    entries.push_back({fmt::format("recovery {}", row.name),
                       with_source(std::string(row.help), row.evidence, row.source)});
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

std::vector<CatalogLine> collective_entries() {
  std::vector<CatalogLine> entries;
  for (size_t k = 0; k < kCollectiveKinds; ++k) {
    const auto kind = static_cast<CollectiveKind>(k);
    entries.push_back({std::string(collective_kind_name(kind)), collective_help(kind)});
  }
  for (const CollectiveAlgorithm& row : collective_algorithms()) {
    entries.push_back({std::string(row.name), "An algorithm. " + std::string(row.help)});
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
      {"slow", &slow_entries},
      {"detectors", &detector_entries},
      {"reliability", &named_rows<&reliability_bases>},
      {"policies", &policy_entries},
  };
  return kKinds;
}

// The kind of that name; `field` is the command that was asked, `more` what it takes beside kinds.
const Kind& kind_of(const std::string& name, const std::string& field = "catalog",
                    const std::vector<std::string>& more = {}) {
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind;
  }
  std::vector<std::string> names = catalog_kinds();
  names.insert(names.end(), more.begin(), more.end());
  Fault fault;
  fault.field = field;
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
      for (const CatalogLine& entry : kind->entries()) {
        list.push_back({{"name", entry.name}, {"help", entry.help}});
      }
      all[kind->name] = list;
    }
    fmt::print(streams.out, "{}\n", all.dump(2));
    return;
  }
  if (options.format == OutputFormat::kCsv) {
    fmt::print(streams.out, "kind,name,help\n");
    for (const Kind* kind : shown) {
      for (const CatalogLine& line : kind->entries()) {
        fmt::print(streams.out, "{},{},{}\n", kind->name, csv_field(line.name), csv_field(line.help));
      }
    }
    return;
  }
  for (const Kind* kind : shown) {
    TextTable table({{kind->name}, {"what it is", Align::kWrap}});
    for (const CatalogLine& entry : kind->entries()) table.add_row({entry.name, entry.help});
    fmt::print(streams.out, "{}{}", kind == shown.front() ? "" : "\n", table.text());
  }
}

}  // namespace

std::vector<std::string> catalog_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

std::vector<CatalogLine> catalog_lines(const std::string& kind) { return kind_of(kind).entries(); }

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
  const std::string language = "spec";
  if (options.names.front() == language) {
    if (options.format != OutputFormat::kTable) {
      reject("--format", "the language is described in text", "table");
    }
    fmt::print(streams.out, "{}", scenario_language_help());
    return kExitDone;
  }
  print_kinds({&kind_of(options.names.front(), "help", {language})}, options, streams);
  return kExitDone;
}

}  // namespace herdsim

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "sim/reliability/failure_log.h"
#include "tools/scenario/check_relations.h"
#include "tools/scenario/cluster_values.h"
#include "tools/scenario/collectives_part.h"
#include "tools/scenario/derived_fields.h"
#include "tools/scenario/load_scenario.h"
#include "tools/scenario/profile_part.h"
#include "tools/scenario/rank_map.h"
#include "tools/scenario/scenario.pb.h"
#include "tools/scenario/set_field.h"
#include "tools/scenario/spec_layers.h"
#include "tools/scenario/spec_parser.h"
#include "tools/scenario/spec_source.h"
#include "tools/scenario/spec_values.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

// fp32 master weight and both moments, and the bf16 weight once a replica.
constexpr int64_t kCheckpointBytesAParameter = 14;

// Gives every field of the default spec the comment "default".
void note_defaults(const pb::Message& message, const std::string& prefix, FieldOrigins* origins) {
  std::vector<const pb::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->message_type() != nullptr) {
      note_defaults(message.GetReflection()->GetMessage(message, field),
                    prefix + field->name() + ".", origins);
    } else {
      origins->set(prefix + field->name(), {.comment = "default"});
    }
  }
}

// The message with its bases, without defaults.
void read_layers(const SpecSource& source, const std::vector<std::string>& sets,
                 spec::Scenario* message, SpecReport* report) {
  parse_spec(source, "", message, &report->origins(), report);
  locate_bases(source, message);
  resolve_base(CatalogKind::kScenarios, "", message, report);
  for (const std::string& set : sets) set_field(set, message, report);
  // Beyond here a fault of syntax would only raise others.
  report->throw_if_any();
  if (message->has_base()) report->add("base", "cannot be set", "the name of the scenario itself");
  resolve_base(CatalogKind::kModels, "model.", message->mutable_model(), report);
  resolve_base(CatalogKind::kClusters, "cluster.", message->mutable_cluster(), report);
  resolve_base(CatalogKind::kSoftware, "software.", message->mutable_software(), report);
}

void put_defaults_below(spec::Scenario* message, SpecReport* report) {
  spec::Scenario defaults;
  default_spec(&defaults);
  FieldOrigins origins;
  note_defaults(defaults, "", &origins);
  lay_over(defaults, origins, message, &report->origins());
}

void read_failure_log(ReliabilityRequest* reliability, int64_t gpus, SpecReport* report,
                      std::vector<std::string>* warnings) {
  if (reliability->failure_log.empty()) return;
  const std::string& path = reliability->failure_log;
  try {
    FailureLog log =
        parse_failure_log(text_of_file(path), path,
                          reliability->failure_log_gpus > 0 ? reliability->failure_log_gpus : gpus);
    reliability->log = std::move(log.classes);
    warnings->insert(warnings->end(), log.warnings.begin(), log.warnings.end());
  } catch (const SpecError& error) {
    // The log's own lines are the places to mend; of a log that cannot be read, its name.
    for (Fault fault : error.faults()) {
      if (fault.line == 0) {
        fault.field = "reliability.failure_log";
        fault.allowed = "a CSV file with columns class and time, time_s, time_h or time_d";
      }
      report->add(std::move(fault));
    }
    report->mark_faulty("reliability.failure_log");
  }
}

Scenario resolve(const SpecSource& source, const std::vector<std::string>& sets);

// What an other job keeps of its own cluster; the machine is that of the scenario that names it.
constexpr std::array<std::string_view, 7> kOwnOfCluster = {
    "placement",    "unavailable_hosts", "unavailable_fraction", "rank_map", "queue_pairs",
    "nccl_version", "degraded"};

// A --set of an other job that would change the machine, which it cannot.
bool changes_machine(std::string_view set) {
  constexpr std::string_view kCluster = "cluster.";
  if (!set.starts_with(kCluster)) return false;
  const std::string_view field =
      set.substr(kCluster.size(), set.find_first_of(".=", kCluster.size()) - kCluster.size());
  return std::find(kOwnOfCluster.begin(), kOwnOfCluster.end(), field) == kOwnOfCluster.end();
}

ClusterSpec machine_for(const ClusterSpec& own, const ClusterSpec& machine) {
  ClusterSpec cluster = machine;
  cluster.placement = own.placement;
  cluster.unavailable_hosts = own.unavailable_hosts;
  cluster.unavailable_fraction = own.unavailable_fraction;
  cluster.rank_map = own.rank_map;
  cluster.queue_pairs = own.queue_pairs;
  cluster.nccl_version = own.nccl_version;
  cluster.degraded = own.degraded;
  return cluster;
}

// Gives each job of the machine hosts of its own, one job after the other.
class HostBook {
 public:
  explicit HostBook(const Scenario& first) : per_host_(first.cluster.gpus_per_host) {
    enter(first);
  }

  void take_from(ClusterSpec* cluster) const {
    cluster->unavailable_hosts.insert(cluster->unavailable_hosts.end(), used_.begin(), used_.end());
    std::sort(cluster->unavailable_hosts.begin(), cluster->unavailable_hosts.end());
    cluster->unavailable_hosts.erase(
        std::unique(cluster->unavailable_hosts.begin(), cluster->unavailable_hosts.end()),
        cluster->unavailable_hosts.end());
  }
  // The first host that two jobs would have; only a rank map does not go around the others.
  std::optional<int64_t> enter(const Scenario& job) {
    const ParallelPlan& p = job.plan;
    const auto placement =
        place_ranks(job.cluster,
                    {.ranks = job.gpus, .seed = job.seed, .ranks_per_replica = p.tp * p.cp * p.pp});
    std::set<int64_t> hosts;
    for (const GpuId gpu : placement) hosts.insert(static_cast<int64_t>(gpu.index()) / per_host_);
    for (const int64_t host : hosts) {
      if (!used_.insert(host).second) return host;
    }
    return std::nullopt;
  }

 private:
  int64_t per_host_;
  std::set<int64_t> used_;
};

// One other job, on the machine and the hosts that are left.
class OtherJobReader {
 public:
  OtherJobReader(const SpecSource& source, const Scenario& first, SpecReport* report)
      : folder_(source.from_catalog ? "" : std::filesystem::path(source.file).parent_path()),
        machine_(first.cluster),
        hosts_(first),
        report_(*report) {}

  void read(const spec::OtherJob& m, const std::string& path, std::vector<OtherJob>* jobs) {
    if (!m.has_scenario())
      return fault(path, "scenario", "is missing", "a catalogue name or a file");
    std::vector<std::string> sets(m.set().begin(), m.set().end());
    for (const std::string& set : sets) {
      if (!changes_machine(set)) continue;
      return fault(path, "set",
                   fmt::format("\"{}\" changes the machine, which is that of all jobs", set),
                   fmt::format("cluster.{}", fmt::join(kOwnOfCluster, ", cluster.")));
    }
    sets.emplace_back("other_jobs=");
    // Its own cluster may have none.
    sets.push_back(
        fmt::format("cluster.storage_network.servers={}", machine_.storage.servers));
    try {
      Scenario job = resolve(find_spec(CatalogKind::kScenarios, located(m.scenario())), sets);
      job.cluster = machine_for(job.cluster, machine_);
      // Constant shares of links are of the machine.
      job.other_traffic.tor_uplinks = job.other_traffic.pod_uplinks = 0;
      if (m.has_name()) job.name = m.name();
      hosts_.take_from(&job.cluster);
      place(std::move(job), seconds_rounded_up(m.begins_s()), path, jobs);
    } catch (const SpecError& error) {
      // They name their own file or --set.
      for (const Fault& fault : error.faults()) report_.add(fault);
    }
  }

 private:
  std::string located(const std::string& name) const {
    const bool beside = is_spec_file(name) && !std::filesystem::path(name).is_absolute();
    return beside ? (folder_ / name).string() : name;
  }
  void fault(const std::string& path, const std::string& field, std::string problem,
             std::string allowed) {
    report_.add(path + "." + field, std::move(problem), std::move(allowed));
  }
  void place(Scenario job, Duration begins, const std::string& path, std::vector<OtherJob>* jobs) {
    Faults faults;
    append_cluster_faults(job.cluster, "", faults);
    for (const Fault& f : faults.list())
      fault(path, "scenario", f.field + ": " + f.problem, f.allowed);
    if (!faults.empty()) return;
    const bool mapped = job.cluster.placement == PlacementKind::kRankMap;
    const int64_t usable = usable_gpus(job.cluster);
    if (!mapped && job.gpus > usable) {
      return fault(path, "scenario",
                   fmt::format("{} takes {} GPUs, and the jobs before it leave {}", job.name,
                               job.gpus, usable),
                   fmt::format("a set \"gpus=...\" of up to {}", usable));
    }
    if (const auto host = hosts_.enter(job)) {
      return fault(path, "scenario",
                   fmt::format("{} and a job before it are both on host {}", job.name, *host),
                   "a rank map of hosts that nobody else has");
    }
    jobs->push_back({std::move(job), begins});
  }

  std::filesystem::path folder_;
  const ClusterSpec machine_;
  HostBook hosts_;
  SpecReport& report_;
};

Scenario resolve(const SpecSource& source, const std::vector<std::string>& sets) {
  check_is_text(source.text, source.file);
  SpecReport report(source.file);
  spec::Scenario message;
  read_layers(source, sets, &message, &report);
  if (!message.has_name()) {
    message.set_name(source.name);
    report.origins().set("name", {.comment = "default: the file's name"});
  }
  put_defaults_below(&message, &report);
  check_fields("", &message, &report);
  derive_fields(&message, &report);
  // What was out of range is in range by now: only what has been derived can be reported again.
  check_fields("", &message, &report);
  Scenario scenario = scenario_from_message(message);
  scenario.profile = device_profile_of(message.profile(), &report);
  scenario.warnings = profile_warnings(message.profile(), scenario.profile);
  read_rank_map(message.cluster().rank_map(), "cluster.rank_map", scenario.cluster, &report);
  scenario.collectives = read_collectives(message, scenario.cluster, &report);
  read_failure_log(&scenario.reliability, scenario.gpus, &report, &scenario.warnings);
  check_relations(scenario, &report, &scenario.warnings);
  report.throw_if_any();
  if (message.other_jobs_size() > 0) {
    OtherJobReader reader(source, scenario, &report);
    for (int i = 0; i < message.other_jobs_size(); ++i) {
      reader.read(message.other_jobs(i), fmt::format("other_jobs.{}", i), &scenario.other_jobs);
    }
    report.throw_if_any();
  }
  if (!message.checkpoint().has_bytes()) {
    // Only now is the model known to have a number of parameters that can be multiplied.
    scenario.checkpoint.bytes = Bytes(scenario.model.parameters() * kCheckpointBytesAParameter);
    message.mutable_checkpoint()->set_bytes(scenario.checkpoint.bytes.count());
    report.origins().set("checkpoint.bytes", {.comment = "default: 14 a parameter"});
  }
  scenario.effective_text = annotated_text(message, report.origins());
  return scenario;
}

// A model, cluster or software stack of its own.
template <typename Message>
Message resolve_part(CatalogKind kind, const SpecSource& source,
                     const std::vector<std::string>& sets, const Message& defaults,
                     SpecReport* report) {
  Message message;
  parse_spec(source, "", &message, &report->origins(), report);
  locate_bases(source, &message);
  for (const std::string& set : sets) set_field(set, &message, report);
  report->throw_if_any();
  resolve_base(kind, "", &message, report);
  if (!message.has_name()) message.set_name(source.name);
  lay_over(defaults, FieldOrigins(), &message, &report->origins());
  return message;
}

}  // namespace

Scenario load_scenario(const std::string& name_or_path, const std::vector<std::string>& sets) {
  return resolve(find_spec(CatalogKind::kScenarios, name_or_path), sets);
}

std::string read_scenario(const std::string& name_or_path, const std::vector<std::string>& sets) {
  const SpecSource source = find_spec(CatalogKind::kScenarios, name_or_path);
  check_is_text(source.text, source.file);
  SpecReport report(source.file);
  spec::Scenario message;
  read_layers(source, sets, &message, &report);
  report.throw_if_any();
  return message.DebugString();
}

Scenario load_scenario_text(std::string_view text, const std::string& file,
                            const std::vector<std::string>& sets) {
  return resolve({.name = std::filesystem::path(file).stem().string(),
                  .file = file,
                  .text = std::string(text)},
                 sets);
}

ModelArchitecture load_model(const std::string& name_or_path,
                             const std::vector<std::string>& sets) {
  const SpecSource source = find_spec(CatalogKind::kModels, name_or_path);
  SpecReport report(source.file);
  spec::Scenario whole;
  default_spec(&whole);
  spec::Model message = resolve_part(CatalogKind::kModels, source, sets, whole.model(), &report);
  check_fields("", &message, &report);
  derive_model_fields(&message, "", &report);
  check_fields("", &message, &report);
  report.throw_if_any();
  return model_from_message(message);
}

ClusterSpec load_cluster(const std::string& name_or_path, const std::vector<std::string>& sets) {
  const SpecSource source = find_spec(CatalogKind::kClusters, name_or_path);
  SpecReport report(source.file);
  spec::Scenario whole;
  default_spec(&whole);
  spec::Cluster message =
      resolve_part(CatalogKind::kClusters, source, sets, whole.cluster(), &report);
  check_fields("", &message, &report);
  ClusterSpec cluster = cluster_from_message(message);
  read_rank_map(message.rank_map(), "rank_map", cluster, &report);
  check_cluster(cluster, "", &report);
  report.throw_if_any();
  return cluster;
}

SoftwareStack load_software(const std::string& name_or_path, const std::vector<std::string>& sets) {
  const SpecSource source = find_spec(CatalogKind::kSoftware, name_or_path);
  SpecReport report(source.file);
  spec::Scenario whole;
  default_spec(&whole);
  spec::Software message =
      resolve_part(CatalogKind::kSoftware, source, sets, whole.software(), &report);
  check_fields("", &message, &report);
  report.throw_if_any();
  return software_from_message(message);
}

}  // namespace herdsim

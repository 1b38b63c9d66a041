#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "sim/reliability/failure_log.h"
#include "tools/scenario/check_relations.h"
#include "tools/scenario/collectives_part.h"
#include "tools/scenario/load_scenario.h"
#include "tools/scenario/profile_part.h"
#include "tools/scenario/rank_map.h"
#include "tools/scenario/scenario.pb.h"
#include "tools/scenario/set_field.h"
#include "tools/scenario/spec_layers.h"
#include "tools/scenario/spec_parser.h"
#include "tools/scenario/spec_source.h"
#include "tools/scenario/spec_values.h"
#include "workloads/uneven_load.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

// One host in this many stands by: 32 at 16,384 GPUs, where the hosts in repair stay below 26 in
// 99.9 % of the time (Llama 3's rate, 40.4 h of repair).
constexpr int64_t kHostsASpare = 64;
// fp32 master weight and both moments, and the bf16 weight once a replica.
constexpr int64_t kCheckpointBytesAParameter = 14;

// Fields that are left out and follow from others. Requires: defaults are in place.
class Derivation {
 public:
  Derivation(spec::Scenario* message, SpecReport* report) : m_(*message), report_(*report) {}

  void run() {
    model(m_.mutable_model(), "model.");
    spec::Parallel& p = *m_.mutable_parallel();
    const double replica =
        static_cast<double>(p.tp()) * static_cast<double>(p.cp()) * static_cast<double>(p.pp());
    constexpr double kMaxGpus = 1 << 22;
    if (!p.has_dp()) {
      const double fits =
          m_.has_gpus() && replica > 0 ? static_cast<double>(m_.gpus()) / replica : 1;
      const bool whole = fits >= 1 && fits <= kMaxGpus && fits == std::floor(fits);
      p.set_dp(whole ? static_cast<int64_t>(fits) : 1);
      note("parallel.dp", "gpus / (tp * cp * pp)");
      if (!report_.sound({"gpus", "parallel.tp", "parallel.cp", "parallel.pp"})) {
        report_.mark_faulty("parallel.dp");
      } else if (!whole) {
        report_.add("parallel.dp",
                    fmt::format("is left out, and gpus ({}) is not divisible by tp * cp * pp ({} * "
                                "{} * {} = {:.0f})",
                                m_.gpus(), p.tp(), p.cp(), p.pp(), replica),
                    "gpus that are a multiple of it");
      }
    }
    if (!m_.has_gpus()) {
      const double product = replica * static_cast<double>(p.dp());
      m_.set_gpus(product >= 1 && product <= kMaxGpus ? static_cast<int64_t>(product) : 1);
      note("gpus", "tp * cp * pp * dp");
    }
    weeks();
    storage_port();
    axis_order(p);
    documents(m_.mutable_training());
    for (int i = 0; i < m_.cluster().degraded_size(); ++i) {
      spec::Degraded& part = *m_.mutable_cluster()->mutable_degraded(i);
      if (!part.has_gpu()) continue;
      const std::string path = "cluster.degraded." + std::to_string(i);
      if (!part.has_compute_factor()) {
        part.set_compute_factor(Degradation{}.compute_factor);
        report_.origins().set(path + ".compute_factor", {.comment = "default"});
      }
      if (!part.has_nic_factor()) {
        part.set_nic_factor(Degradation{}.nic_factor);
        report_.origins().set(path + ".nic_factor", {.comment = "default"});
      }
    }
  }

  // What training for weeks needs.
  void weeks() {
    if (!m_.recovery().has_spares()) {
      const int64_t hosts =
          (m_.gpus() + m_.cluster().gpus_per_host() - 1) / m_.cluster().gpus_per_host();
      m_.mutable_recovery()->set_spares((hosts + kHostsASpare - 1) / kHostsASpare);
      note("recovery.spares", "one for 64 hosts");
    }
  }

  // A host's way to the storage network is the cluster's, which a save in weeks of training and one
  // beside a step both take; it may be given by either name.
  void storage_port() {
    constexpr std::string_view kPort = "checkpoint.storage.frontend_gigabits_per_second";
    constexpr std::string_view kOfCluster = "cluster.storage_network.host_gigabits_per_second";
    constexpr double kNoBound = 1e5;  // Gb/s: beyond what a client could use
    spec::Storage* storage = m_.mutable_checkpoint()->mutable_storage();
    spec::StorageNetwork* network = m_.mutable_cluster()->mutable_storage_network();
    const bool over_training = network->path() == spec::StorageNetwork::TRAINING;
    if (!storage->has_frontend_gigabits_per_second()) {
      storage->set_frontend_gigabits_per_second(
          over_training ? m_.cluster().nic_gigabits_per_second() *
                              static_cast<double>(m_.cluster().gpus_per_host())
                        : network->host_gigabits_per_second());
      return note(std::string(kPort),
                  over_training ? "all NICs of a host" : std::string(kOfCluster));
    }
    if (over_training) return;
    const double port = storage->frontend_gigabits_per_second();
    if (!report_.origins().is_given(kOfCluster)) {
      network->set_host_gigabits_per_second(std::min(port, kNoBound));
      report_.origins().set(std::string(kOfCluster), {.comment = std::string(kPort)});
    } else if (port != network->host_gigabits_per_second()) {
      report_.add(kPort,
                  fmt::format("{} Gb/s, and {} says {}", port, kOfCluster,
                              network->host_gigabits_per_second()),
                  "one of the two, or the same in both");
    }
  }

  void model(spec::Model* model, const std::string& prefix) {
    if (!model->has_kv_heads() && model->has_heads()) {
      model->set_kv_heads(model->heads());
      note(prefix + "kv_heads", "heads");
    }
    if (!model->has_head_dim() && model->has_hidden() && model->heads() > 0) {
      if (model->hidden() % model->heads() != 0) {
        report_.add(prefix + "head_dim", "is missing, and heads does not divide hidden",
                    "a whole number");
      }
      model->set_head_dim(std::max<int64_t>(1, model->hidden() / model->heads()));
      note(prefix + "head_dim", "hidden / heads");
    }
  }

 private:
  // Every axis once, or none at all.
  void axis_order(const spec::Parallel& p) {
    std::vector<int> axes(p.order().begin(), p.order().end());
    std::sort(axes.begin(), axes.end());
    if (axes.empty() || axes == std::vector<int>{spec::Parallel::TP, spec::Parallel::CP,
                                                 spec::Parallel::PP, spec::Parallel::DP}) {
      return;
    }
    report_.add("parallel.order", fmt::format("{} entries that do not name each axis once", axes.size()),
                "TP, CP, PP and DP, each once, from the innermost");
  }

  void documents(spec::Training* t) {
    if (t->documents().mean_tokens() <= 0 ||
        !report_.sound({"training.documents.mean_tokens", "training.documents.sigma",
                        "training.sequence_length", "training.global_batch"})) {
      return;
    }
    if (t->document_mask_fraction() != 1) {
      report_.add("training.document_mask_fraction", "is given beside training.documents",
                  "one of the two");
      return;
    }
    const DocumentLengths lengths{.mean_tokens = t->documents().mean_tokens(),
                                  .sigma = t->documents().sigma()};
    // Each is drawn.
    constexpr double kMostInSequence = 2e4, kMostInStep = 2e7;
    const double in_sequence = static_cast<double>(t->sequence_length()) /
                               mean_packed_tokens(lengths, t->sequence_length());
    const double in_step = in_sequence * static_cast<double>(t->global_batch());
    if (in_sequence > kMostInSequence || in_step > kMostInStep) {
      report_.add("training.documents.mean_tokens",
                  fmt::format("{:.2g} documents in a sequence, {:.2g} in a step", in_sequence, in_step),
                  fmt::format("lengths that give up to {:.0e} in a sequence and {:.0e} in a step",
                              kMostInSequence, kMostInStep));
      return;
    }
    t->set_document_mask_fraction(mean_document_mask(lengths, t->sequence_length()));
    note("training.document_mask_fraction", "what training.documents leave in the mean");
  }

  void note(const std::string& path, const std::string& formula) {
    report_.origins().set(path, {.comment = "default: " + formula});
  }
  spec::Scenario& m_;
  SpecReport& report_;
};

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
  Derivation(&message, &report).run();
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
  Derivation(&whole, &report).model(&message, "");
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

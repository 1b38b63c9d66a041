#include "tools/scenario/check_relations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/models/data_type_names.h"
#include "tools/scenario/known_names.h"
#include "tools/scenario/relation_rules.h"

namespace herdsim {
namespace {

class OtherRules : RelationRules {
 public:
  using RelationRules::RelationRules;

  void run() {
    degraded();
    names();
    storage_traffic();
    attention_kernel();
    precision();
    weeks();
  }

 private:
  void degraded() {
    for (size_t i = 0; i < s_.cluster.degraded.size(); ++i) {
      const std::string path = fmt::format("cluster.degraded.{}.gpu", i);
      if (!sound({path, "gpus"}) || s_.cluster.degraded[i].gpu < s_.gpus) continue;
      fault(path,
            fmt::format("there is no rank {} in a job of {} GPUs", s_.cluster.degraded[i].gpu,
                        s_.gpus),
            fmt::format("0 to {}", s_.gpus - 1));
    }
  }

  void names() {
    name("cluster.routing", s_.cluster.routing, NameKind::kRouting);
    name("cluster.buffers", s_.cluster.buffers, NameKind::kBuffers);
  }
  void name(std::string_view path, const std::string& value, NameKind kind) {
    const std::vector<std::string> names = known_names(kind);
    if (value.empty() || !sound({path}) ||
        std::find(names.begin(), names.end(), value) != names.end())
      return;
    report_->add(path, fmt::format("there is no \"{}\"", value),
                 fmt::format("{}", fmt::join(names, ", ")), nearest_name(value, names));
  }

  // Flows need servers to go to.
  void storage_traffic() {
    const OtherTraffic& traffic = s_.other_traffic;
    if (!traffic.has_storage() || !sound({"cluster", "other_traffic", "checkpoint"})) return;
    if (s_.cluster.storage.servers == 0) {
      fault(traffic.saving ? "other_traffic.saving" : "other_traffic.loading",
            "the cluster has no storage servers (cluster.storage_network.servers is 0)", "false");
    }
    constexpr double kMostLoading = 1e6;  // what a step reads stays in 64 bits
    if (traffic.loading && s_.checkpoint.storage.data_loading_gb_per_s > kMostLoading) {
      fault("checkpoint.storage.data_loading_gigabytes_per_second",
            fmt::format("{} beside a step (other_traffic.loading)",
                        s_.checkpoint.storage.data_loading_gb_per_s),
            fmt::format("up to {}", kMostLoading));
    }
    if (traffic.loading && s_.checkpoint.storage.data_loading_gb_per_s == 0) {
      fault("other_traffic.loading", "checkpoint.storage.data_loading_gigabytes_per_second is 0: there is nothing to read",
            "false");
    }
  }

  void attention_kernel() {
    if (!sound({"profile", "software.attention_kernel"}) ||
        s_.profile.attention_kernel(s_.software.attention_kernel)) {
      return;
    }
    std::vector<std::string> names;
    for (const AttentionKernel& kernel : s_.profile.attention) names.push_back(kernel.name);
    report_->add("software.attention_kernel",
                 fmt::format("profile {} has no attention kernel \"{}\"", s_.profile.name,
                             s_.software.attention_kernel),
                 fmt::format("{}", fmt::join(names, ", ")),
                 nearest_name(s_.software.attention_kernel, names));
  }

  // Utilisation is a share of the peak of the type.
  void precision() {
    const DataType asked = s_.training.precision;
    const auto has = [&](DataType type) { return s_.profile.peak_of(type).per_second() > 0; };
    if (!sound({"profile", "training.precision"}) || has(asked)) return;
    std::vector<std::string_view> types;
    for (size_t type = 0; type < kDataTypeNames.size(); ++type) {
      if (has(static_cast<DataType>(type))) types.push_back(kDataTypeNames[type]);
    }
    fault("training.precision",
          fmt::format("profile {} has no peak for {}", s_.profile.name, data_type_name(asked)),
          fmt::format("{}", fmt::join(types, ", ")));
  }

  // Reliability, checkpoint and recovery by the rules of those who simulate them.
  void weeks() {
    CampaignRequest request{.machine = {.gpus = s_.gpus,
                                        .gpus_per_host = s_.cluster.gpus_per_host,
                                        .gpus_per_tor = s_.cluster.gpus_per_tor,
                                        .gpus_per_pod = s_.cluster.gpus_per_pod},
                            .reliability = s_.reliability,
                            .checkpoint = s_.checkpoint,
                            .recovery = s_.recovery};
    // Follows from the model once that has been checked.
    if (request.checkpoint.bytes == Bytes(0)) request.checkpoint.bytes = Bytes(1);
    Faults faults;
    append_faults(request, faults);
    for (Fault& fault : faults.list()) {
      fault.field = path_with_dots(fault.field);
      if (sound({fault.field}))
        report_->add(fault.field, fault.problem, fault.allowed, fault.nearest);
    }
  }
};

}  // namespace

std::string divisors_of(int64_t n, int64_t limit) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(n, limit) && divisors.size() < 24; ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return fmt::format("{}", fmt::join(divisors, ", "));
}

void check_cluster(const ClusterSpec& cluster, const std::string& prefix, SpecReport* report) {
  Faults faults;
  append_cluster_faults(cluster, prefix, faults);
  for (Fault& fault : faults.list()) {
    const std::string path = path_with_dots(fault.field);
    if (report->sound({path})) report->add(path, fault.problem, fault.allowed, fault.nearest);
  }
}

void check_relations(const Scenario& scenario, SpecReport* report,
                     std::vector<std::string>* warnings) {
  check_cluster(scenario.cluster, "cluster.", report);
  check_model(scenario, report, warnings);
  check_plan(scenario, report, warnings);
  OtherRules(scenario, report, warnings).run();
}

}  // namespace herdsim

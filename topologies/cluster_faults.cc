#include <fmt/format.h>

#include <string>
#include <vector>

#include "topologies/cluster.h"

namespace herdsim {
namespace {

// A hundred times the largest cluster announced; links still fit 32-bit ids.
constexpr int64_t kMaxGpus = 1 << 24;

class ClusterCheck {
 public:
  ClusterCheck(std::string_view prefix, Faults& faults) : prefix_(prefix), faults_(faults) {}

  void positive(std::string_view field, int64_t value) {
    if (value <= 0) add(field, fmt::format("{} is not positive", value), "1 or more");
  }
  void positive(std::string_view field, Bandwidth value) {
    if (value <= Bandwidth()) add(field, "no bandwidth", "more than 0");
  }
  void factor(std::string_view field, double value) {
    if (!(value > 0 && value <= 1)) add(field, fmt::format("{}", value), "above 0, at most 1");
  }
  void multiple(std::string_view field, int64_t value, std::string_view of, int64_t unit) {
    if (value > 0 && unit > 0 && value % unit != 0) {
      add(field, fmt::format("{} is not a multiple of {} ({})", value, of, unit), "");
    }
  }
  void add(std::string_view field, std::string problem, std::string allowed,
           std::string nearest = "") {
    faults_.add({.field = prefix_ + std::string(field),
                 .problem = std::move(problem),
                 .allowed = std::move(allowed),
                 .nearest = std::move(nearest)});
  }

 private:
  std::string prefix_;
  Faults& faults_;
};

void check_topology_name(const ClusterSpec& spec, ClusterCheck& check) {
  if (find_topology(spec.topology) != nullptr) return;
  std::vector<std::string> names;
  std::string allowed;
  for (const Topology& row : topologies()) {
    names.emplace_back(row.name);
    allowed += (allowed.empty() ? "" : ", ") + names.back();
  }
  check.add("topology", fmt::format("\"{}\" is no topology", spec.topology), allowed,
            nearest_name(spec.topology, names));
}

}  // namespace

void append_cluster_faults(const ClusterSpec& spec, std::string_view prefix, Faults& faults) {
  ClusterCheck check(prefix, faults);
  check_topology_name(spec, check);
  check.positive("gpus", spec.gpus);
  if (spec.gpus > kMaxGpus) {
    check.add("gpus", fmt::format("{} GPUs", spec.gpus), fmt::format("at most {}", kMaxGpus));
  }
  check.positive("gpus_per_host", spec.gpus_per_host);
  check.positive("gpus_per_tor", spec.gpus_per_tor);
  check.positive("gpus_per_pod", spec.gpus_per_pod);
  check.positive("tor_uplinks", spec.tor_uplinks);
  check.multiple("gpus", spec.gpus, "gpus_per_host", spec.gpus_per_host);
  const Topology* row = find_topology(spec.topology);
  if (row != nullptr && row->has_rails) {
    check.multiple("gpus_per_pod", spec.gpus_per_pod, "gpus_per_tor * gpus_per_host",
                   spec.gpus_per_tor * spec.gpus_per_host);
  } else {
    check.multiple("gpus_per_tor", spec.gpus_per_tor, "gpus_per_host", spec.gpus_per_host);
    check.multiple("gpus_per_pod", spec.gpus_per_pod, "gpus_per_tor", spec.gpus_per_tor);
  }
  if (!(spec.pod_oversubscription >= 0.01 && spec.pod_oversubscription <= 1e6)) {
    check.add("pod_oversubscription", fmt::format("{}", spec.pod_oversubscription),
              "0.01 to 1000000; 1 is full bisection");
  }
  check.positive("nvlink", spec.nvlink);
  check.positive("nic", spec.nic);
  check.positive("pcie", spec.pcie);
  check.factor("nic_efficiency", spec.nic_efficiency);
  for (size_t i = 0; i < spec.degraded.size(); ++i) {
    const Degradation& part = spec.degraded[i];
    const std::string field = fmt::format("degraded[{}].", i);
    if (part.gpu < 0 || part.gpu >= spec.gpus) {
      check.add(field + "gpu", fmt::format("no rank {}", part.gpu),
                fmt::format("0 to {}", spec.gpus - 1));
    }
    check.factor(field + "compute_factor", part.compute_factor);
    check.factor(field + "nic_factor", part.nic_factor);
  }
}

}  // namespace herdsim

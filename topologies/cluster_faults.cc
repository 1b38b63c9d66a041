#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "topologies/cluster.h"
#include "topologies/cluster_check.h"
#include "topologies/storage_network.h"

namespace herdsim {
namespace {

// A hundred times the largest cluster announced; links still fit 32-bit ids.
constexpr int64_t kMaxGpus = 1 << 24;

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

void check_placement(const ClusterSpec& spec, ClusterCheck& check) {
  if (spec.gpus <= 0 || spec.gpus_per_host <= 0) return;
  const int64_t hosts = spec.gpus / spec.gpus_per_host;
  for (size_t i = 0; i < spec.unavailable_hosts.size(); ++i) {
    const int64_t host = spec.unavailable_hosts[i];
    if (host >= 0 && host < hosts) continue;
    check.add(fmt::format("unavailable_hosts[{}]", i), fmt::format("there is no host {}", host),
              fmt::format("0 to {}", hosts - 1));
  }
  if (!(spec.unavailable_fraction >= 0 && spec.unavailable_fraction < 1)) {
    check.add("unavailable_fraction", fmt::format("{}", spec.unavailable_fraction),
              "0 or more, below 1");
  }
  std::vector<int64_t> used;
  for (const int64_t gpu : spec.rank_map) {
    if (gpu < 0 || gpu >= spec.gpus) {
      return check.add("rank_map", fmt::format("rank {} is on GPU {}", used.size(), gpu),
                       fmt::format("0 to {}", spec.gpus - 1));
    }
    used.push_back(gpu);
  }
  std::sort(used.begin(), used.end());
  const auto twice = std::adjacent_find(used.begin(), used.end());
  if (twice != used.end()) {
    check.add("rank_map", fmt::format("two ranks are on GPU {}", *twice), "each GPU once");
  }
}

// A factor that has no meaning for the part would change nothing.
void check_degraded(const ClusterSpec& spec, const Degradation& part, const std::string& field,
                    ClusterCheck& check) {
  const int named = (part.gpu >= 0) + (part.tor >= 0) + (part.pod >= 0) + (part.plane >= 0);
  if (named != 1) {
    return check.add(field.substr(0, field.size() - 1),
                     named == 0 ? "names no part" : "names more than one part",
                     "exactly one of gpu, tor, pod and plane");
  }
  if (part.gpu >= spec.gpus) {
    check.add(field + "gpu", fmt::format("no rank {}", part.gpu),
              fmt::format("0 to {}", spec.gpus - 1));
  }
  check.factor(field + "compute_factor", part.compute_factor);
  check.factor_or_zero(field + "nic_factor", part.nic_factor);
  check.factor_or_zero(field + "uplink_factor", part.uplink_factor);
  if (part.gpu < 0 && (part.compute_factor != 1 || part.nic_factor != 1)) {
    check.add(field + (part.nic_factor != 1 ? "nic_factor" : "compute_factor"),
              "is of a GPU, and the part is none", "uplink_factor or down");
  }
  if (part.uplink_factor != 1 && part.tor < 0 && part.pod < 0) {
    check.add(field + "uplink_factor", "is of a ToR or pod", "nic_factor of a GPU");
  }
  if (part.down && part.tor < 0 && part.plane < 0) {
    check.add(field + "down", "is of a ToR or plane",
              part.gpu >= 0 ? "nic_factor: 0 for a NIC" : "uplink_factor: 0 for a pod");
  }
  if (!part.is_lasting() && part.compute_factor != 1) {
    check.add(field + "at_s", "a GPU's speed does not change inside a step",
              "nic_factor, uplink_factor or down");
  }
  if (part.lasts <= Duration::zero()) {
    check.add(field + "for_s", "no time at all", "seconds, above 0");
  }
}

// Fields that say what another topology looks like would change nothing.
void check_unused_shapes(const ClusterSpec& spec, const Topology* row, ClusterCheck& check) {
  const std::string_view name = row == nullptr ? spec.topology : row->name;
  if (!spec.torus.empty() && name != "torus") {
    check.add("torus", fmt::format("{} has no extents", name), "topology: torus");
  }
  if (spec.in_network_reduction && row != nullptr && row->is_mesh && name != "torus") {
    check.add("in_network_reduction", fmt::format("trees of sums over a {} are not modelled", name),
              "false, or a topology with switches above each other");
  }
  if (!spec.network.empty() && name != "graph") {
    check.add("network", fmt::format("{} is not written out", name), "topology: graph");
  }
}

void check_switches(const ClusterSpec& spec, const TopologyFacts& facts, ClusterCheck& check) {
  const auto exists = [&](size_t i, std::string_view kind, int64_t index, int64_t count) {
    if (index < count) return;
    check.add(fmt::format("degraded[{}].{}", i, kind),
              fmt::format("there is no {} {}", kind, index), fmt::format("0 to {}", count - 1));
  };
  const bool is_mesh = find_topology(spec.topology)->is_mesh;
  for (size_t i = 0; i < spec.degraded.size(); ++i) {
    const Degradation& part = spec.degraded[i];
    if (is_mesh && (part.pod >= 0 || part.plane >= 0)) {
      check.add(fmt::format("degraded[{}].{}", i, part.pod >= 0 ? "pod" : "plane"),
                fmt::format("a {} has none above its switches", spec.topology), "a tor or gpu");
      continue;
    }
    exists(i, "tor", part.tor, facts.tors);
    exists(i, "pod", part.pod, facts.pods);
    exists(i, "plane", part.plane, facts.planes);
    if (part.pod == 0 && facts.pods == 1) {
      check.add(fmt::format("degraded[{}].pod", i), "the only pod has no uplinks", "a ToR");
    }
  }
}

}  // namespace

void ClusterCheck::positive(std::string_view field, int64_t value) {
  if (value <= 0) add(field, fmt::format("{} is not positive", value), "1 or more");
}

void ClusterCheck::positive(std::string_view field, Bandwidth value) {
  if (value <= Bandwidth()) add(field, "no bandwidth", "more than 0");
}

void ClusterCheck::factor(std::string_view field, double value) {
  if (!(value > 0 && value <= 1)) add(field, fmt::format("{}", value), "above 0, at most 1");
}

void ClusterCheck::factor_or_zero(std::string_view field, double value) {
  if (!(value >= 0 && value <= 1)) add(field, fmt::format("{}", value), "0 to 1");
}

void ClusterCheck::multiple(std::string_view field, int64_t value, std::string_view of,
                            int64_t unit) {
  if (value > 0 && unit > 0 && value % unit != 0) {
    add(field, fmt::format("{} is not a multiple of {} ({})", value, of, unit), "");
  }
}

void ClusterCheck::add(std::string_view field, std::string problem, std::string allowed,
                       std::string nearest) {
  faults_.add({.field = prefix_ + std::string(field),
               .problem = std::move(problem),
               .allowed = std::move(allowed),
               .nearest = std::move(nearest)});
}

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
  if (row != nullptr) {
    if (row->append_faults != nullptr) row->append_faults(spec, check);
  } else {
    // Whatever was meant: most topologies have racks.
    check.multiple("gpus_per_tor", spec.gpus_per_tor, "gpus_per_host", spec.gpus_per_host);
    check.multiple("gpus_per_pod", spec.gpus_per_pod, "gpus_per_tor", spec.gpus_per_tor);
  }
  check_unused_shapes(spec, row, check);
  if (spec.rails != 0 && row != nullptr && !row->has_rails) {
    check.add("rails", fmt::format("{} has no rails", spec.topology), "rail-optimized, dual-plane");
  }
  if (spec.rails < 0 || spec.planes < 0 || spec.switch_ports < 0) {
    check.add(spec.rails < 0    ? "rails"
              : spec.planes < 0 ? "planes"
                                : "switch_ports",
              "is negative", "0 or more");
  }
  if (spec.switch_ports == 1) {
    check.add("switch_ports", "a switch of one port joins nothing", "0, or 2 and more");
  }
  if (!(spec.pod_oversubscription >= 0.01 && spec.pod_oversubscription <= 1e6)) {
    check.add("pod_oversubscription", fmt::format("{}", spec.pod_oversubscription),
              "0.01 to 1000000; 1 is full bisection");
  }
  check.positive("nvlink", spec.nvlink);
  check.positive("nic", spec.nic);
  check.positive("pcie", spec.pcie);
  check.factor("nic_efficiency", spec.nic_efficiency);
  check_placement(spec, check);
  append_storage_faults(spec, check);
  const bool sound = faults.empty();
  for (size_t i = 0; i < spec.degraded.size(); ++i) {
    check_degraded(spec, spec.degraded[i], fmt::format("degraded[{}].", i), check);
  }
  if (sound && row != nullptr && !spec.degraded.empty())
    check_switches(spec, row->facts(spec), check);
}

}  // namespace herdsim

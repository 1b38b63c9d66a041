#include "topologies/clos.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/fabric/fabric_builder.h"

namespace herdsim {
namespace {

int64_t parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

// How many of `whole` things fall into part `index`, the last part taking what is left.
int64_t size_of_part(int64_t whole, int64_t part, int64_t index) {
  return std::clamp(whole - index * part, int64_t{0}, part);
}

int64_t pod_uplink_lanes(const ClosShape& s, int64_t gpus_in_pod) {
  return std::max<int64_t>(1,
                           std::llround(static_cast<double>(gpus_in_pod) / s.pod_oversubscription));
}

// A pod-layer switch gives half its ports to the core where there is one; a core switch gives all
// to pods.
int64_t pod_layer_switches(const ClosShape& s, int64_t lanes_below, bool has_core) {
  if (s.switch_ports == 0) return 0;
  return parts(lanes_below, has_core ? s.switch_ports / 2 : s.switch_ports);
}

int64_t core_layer_switches(const ClosShape& s, int64_t lanes_below) {
  return s.switch_ports == 0 ? 0 : parts(lanes_below, s.switch_ports);
}

// What a ToR group can send upwards, all its rails together. Every rail of a group has the same
// number of NICs.
Bandwidth group_supply(const ClosShape& s, int64_t gpus_in_group) {
  return s.nic * std::min(gpus_in_group / s.rails, s.tor_uplinks) * s.rails;
}

// Of the groups [first, last) that hold `gpus` GPUs in all.
Bandwidth supply_of_groups(const ClosShape& s, int64_t gpus, int64_t first, int64_t last) {
  Bandwidth sum;
  for (int64_t group = first; group < last; ++group) {
    sum = sum + group_supply(s, size_of_part(gpus, s.gpus_per_group, group));
  }
  return sum;
}

Bandwidth pod_supply(const ClosShape& s, int64_t pod) {
  const int64_t gpus = size_of_part(s.gpus, s.gpus_per_pod, pod);
  return std::min(supply_of_groups(s, gpus, 0, parts(gpus, s.gpus_per_group)),
                  s.nic * pod_uplink_lanes(s, gpus));
}

Bandwidth first_pod_bisection(const ClosShape& s) {
  const int64_t gpus = std::min(s.gpus, s.gpus_per_pod);
  const int64_t groups = parts(gpus, s.gpus_per_group);
  if (groups == 1) return s.nic * (gpus / s.gpus_per_host / 2 * s.gpus_per_host);
  return std::min(supply_of_groups(s, gpus, 0, groups / 2),
                  supply_of_groups(s, gpus, groups / 2, groups));
}

Bandwidth pods_bisection(const ClosShape& s, int64_t pods) {
  std::pair<Bandwidth, Bandwidth> sides;
  for (int64_t pod = 0; pod < pods; ++pod) {
    Bandwidth& side = pod < pods / 2 ? sides.first : sides.second;
    side = side + pod_supply(s, pod);
  }
  return std::min(sides.first, sides.second);
}

}  // namespace

Fabric build_clos(const ClosShape& s) {
  const int64_t groups = parts(s.gpus, s.gpus_per_group);
  const int64_t pods = parts(s.gpus, s.gpus_per_pod);
  const auto count = [](int64_t n) { return static_cast<size_t>(n); };
  FabricBuilder builder(
      {.gpus = count(s.gpus), .gpus_per_host = count(s.gpus_per_host), .nvlink = s.nvlink});
  builder.reserve(count(s.gpus + groups * s.rails + pods + 1));

  std::vector<NodeId> nics, tors;
  nics.reserve(count(s.gpus));
  tors.reserve(count(groups * s.rails));
  for (int64_t gpu = 0; gpu < s.gpus; ++gpu) {
    nics.push_back(builder.add(NodeKind::kNic));
    builder.connect(NodeId(count(gpu)), nics.back(), s.pcie);
  }
  for (int64_t tor = 0; tor < groups * s.rails; ++tor)
    tors.push_back(builder.add(NodeKind::kTor, count(s.planes)));
  for (int64_t gpu = 0; gpu < s.gpus; ++gpu) {
    const int64_t rail = gpu % s.gpus_per_host % s.rails;
    builder.connect(nics[count(gpu)], tors[count(gpu / s.gpus_per_group * s.rails + rail)],
                    s.nic / s.planes, count(s.planes));
  }

  const int64_t groups_per_pod = s.gpus_per_pod / s.gpus_per_group;
  std::vector<NodeId> pod_nodes;
  int64_t core_lanes = 0;
  for (int64_t pod = 0; pod < pods; ++pod) {
    const int64_t lanes = size_of_part(groups, groups_per_pod, pod) * s.rails * s.tor_uplinks;
    pod_nodes.push_back(builder.add(
        NodeKind::kPod, count(std::max<int64_t>(1, pod_layer_switches(s, lanes, pods > 1)))));
    core_lanes += pod_uplink_lanes(s, size_of_part(s.gpus, s.gpus_per_pod, pod));
  }
  for (int64_t tor = 0; tor < groups * s.rails; ++tor) {
    builder.connect(tors[count(tor)], pod_nodes[count(tor / s.rails / groups_per_pod)], s.nic,
                    count(s.tor_uplinks));
  }
  if (pods > 1) {
    const NodeId core = builder.add(
        NodeKind::kCore, count(std::max<int64_t>(1, core_layer_switches(s, core_lanes))));
    for (int64_t pod = 0; pod < pods; ++pod) {
      builder.connect(pod_nodes[count(pod)], core, s.nic,
                      count(pod_uplink_lanes(s, size_of_part(s.gpus, s.gpus_per_pod, pod))));
    }
  }
  return std::move(builder).build();
}

TopologyFacts clos_facts(const ClosShape& s) {
  TopologyFacts facts;
  const int64_t groups = parts(s.gpus, s.gpus_per_group);
  facts.gpus = s.gpus;
  facts.hosts = s.gpus / s.gpus_per_host;
  facts.tors = groups * s.rails * s.planes;
  facts.pods = parts(s.gpus, s.gpus_per_pod);
  facts.planes = s.planes;
  facts.gpus_per_pod = s.gpus_per_pod;
  facts.nic_links = s.gpus * s.planes;
  facts.tor_uplinks = groups * s.rails * s.tor_uplinks;
  facts.degree = std::min(s.gpus, s.gpus_per_group) / s.rails + parts(s.tor_uplinks, s.planes);
  const double fullest_tor = static_cast<double>(std::min(s.gpus, s.gpus_per_group)) /
                             static_cast<double>(s.rails * s.tor_uplinks);
  facts.oversubscription = std::max(1.0, fullest_tor);
  const bool has_core = facts.pods > 1;
  for (int64_t pod = 0; pod < facts.pods; ++pod) {
    const int64_t gpus = size_of_part(s.gpus, s.gpus_per_pod, pod);
    facts.pod_switches +=
        pod_layer_switches(s, parts(gpus, s.gpus_per_group) * s.rails * s.tor_uplinks, has_core);
    if (!has_core) continue;
    facts.pod_uplinks += pod_uplink_lanes(s, gpus);
    facts.oversubscription =
        std::max(facts.oversubscription,
                 static_cast<double>(gpus) / static_cast<double>(pod_uplink_lanes(s, gpus)));
  }
  facts.core_switches = has_core ? core_layer_switches(s, facts.pod_uplinks) : 0;
  facts.pod_bisection = first_pod_bisection(s);
  facts.cluster_bisection = has_core ? pods_bisection(s, facts.pods) : facts.pod_bisection;
  for (int64_t pod = 0; has_core && pod < facts.pods; ++pod) {
    facts.top_supply = facts.top_supply + pod_supply(s, pod);
  }
  if (!has_core) facts.top_supply = supply_of_groups(s, s.gpus, 0, groups);
  facts.diameter = has_core ? 6 : facts.hosts == 1 ? 0 : groups * s.rails > 1 ? 4 : 2;
  return facts;
}

}  // namespace herdsim

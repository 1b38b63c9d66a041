#include "topologies/storage_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/fabric/storage_builder.h"
#include "topologies/cluster_check.h"

namespace herdsim {
namespace {

StorageShape shape_of(const ClusterSpec& spec) {
  const StorageNetwork& s = spec.storage;
  return {.over_training = s.path == StorageNetwork::Path::kTraining,
          .gpus_per_port = static_cast<size_t>(spec.gpus_per_host),
          .port = s.host,
          .hosts_per_switch = static_cast<size_t>(s.hosts_per_switch),
          .oversubscription = s.oversubscription,
          .servers = static_cast<size_t>(s.servers),
          .server = s.server};
}

}  // namespace

Fabric with_storage_network(Fabric fabric, const ClusterSpec& spec) {
  if (spec.storage.servers == 0) return fabric;
  return with_storage(std::move(fabric), shape_of(spec));
}

void add_storage_facts(const ClusterSpec& spec, TopologyFacts& facts) {
  const StorageShape shape = shape_of(spec);
  if (shape.servers == 0) return;
  facts.storage_servers = spec.storage.servers;
  const Bandwidth servers = shape.server * spec.storage.servers;
  if (shape.over_training) {
    facts.storage_bandwidth = std::min(servers, facts.top_supply);
    return;
  }
  const auto hosts = static_cast<size_t>(facts.hosts);
  facts.frontend_ports = facts.hosts;
  facts.frontend_switches =
      static_cast<int64_t>((hosts + shape.hosts_per_switch - 1) / shape.hosts_per_switch);
  Bandwidth supply = shape.port * facts.hosts;
  if (facts.frontend_switches > 1) {
    supply = Bandwidth();
    for (size_t first = 0; first < hosts; first += shape.hosts_per_switch) {
      const size_t below = std::min(shape.hosts_per_switch, hosts - first);
      const size_t lanes = frontend_uplinks(shape, below);
      facts.frontend_uplinks += static_cast<int64_t>(lanes);
      supply = supply + shape.port * static_cast<int64_t>(std::min(below, lanes));
    }
  }
  facts.storage_bandwidth = std::min(servers, supply);
}

void append_storage_faults(const ClusterSpec& spec, ClusterCheck& check) {
  const StorageNetwork& s = spec.storage;
  if (s.servers < 0)
    check.add("storage_network.servers", fmt::format("{} servers", s.servers), "0 or more");
  check.positive("storage_network.server", s.server);
  check.positive("storage_network.host", s.host);
  check.positive("storage_network.hosts_per_switch", s.hosts_per_switch);
  if (!(s.oversubscription >= 0.001 && s.oversubscription <= 1000)) {
    check.add("storage_network.oversubscription", fmt::format("{}", s.oversubscription),
              "0.001 to 1000");
  }
  // Sums of rates stay in 64 bits.
  constexpr double kMost = 1e18;
  const auto rate = [](Bandwidth one) { return static_cast<double>(one.bytes_per_second()); };
  if (static_cast<double>(s.servers) * rate(s.server) > kMost) {
    check.add("storage_network.servers",
              fmt::format("{} servers of {:.3g} bytes a second each", s.servers, rate(s.server)),
              "10^18 bytes a second in all");
  }
  const double hosts = static_cast<double>(spec.gpus) / static_cast<double>(spec.gpus_per_host);
  if (s.servers > 0 && hosts * rate(s.host) / std::min(1.0, s.oversubscription) > kMost) {
    check.add("storage_network.host",
              fmt::format("{:.3g} bytes a second of {:.0f} hosts each", rate(s.host), hosts),
              "10^18 bytes a second in all, of ports and of uplinks");
  }
  const Topology* row = find_topology(spec.topology);
  if (row != nullptr && row->is_mesh && s.servers > 0 &&
      s.path == StorageNetwork::Path::kTraining) {
    check.add(
        "storage_network.path",
        fmt::format("TRAINING, and no switch of a {} is above all others for servers to hang on",
                    spec.topology),
        "FRONTEND");
  }
}

}  // namespace herdsim

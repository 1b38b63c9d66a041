#include "tools/scenario/cluster_values.h"

#include "tools/scenario/enum_cast.h"
#include "tools/scenario/scenario.pb.h"

namespace herdsim {
namespace {

static_assert(static_cast<int>(StorageNetwork::Path::kTraining) == spec::StorageNetwork::TRAINING);
static_assert(static_cast<int>(PlacementKind::kRankMap) == spec::Cluster::RANK_MAP);

Bandwidth gigabytes(double rate) { return bytes_per_second(rate * 1e9); }
Bandwidth gigabits(double rate) { return bytes_per_second(rate * 1e9 / 8); }
double in_gigabytes(Bandwidth rate) { return static_cast<double>(rate.bytes_per_second()) / 1e9; }
double in_gigabits(Bandwidth rate) {
  return static_cast<double>(rate.bytes_per_second()) * 8 / 1e9;
}

Degradation degradation_from_message(const spec::Degraded& m) {
  Degradation part;
  if (m.has_gpu()) part.gpu = m.gpu();
  if (m.has_compute_factor()) part.compute_factor = m.compute_factor();
  if (m.has_nic_factor()) part.nic_factor = m.nic_factor();
  if (m.has_tor()) part.tor = m.tor();
  if (m.has_pod()) part.pod = m.pod();
  if (m.has_plane()) part.plane = m.plane();
  if (m.has_uplink_factor()) part.uplink_factor = m.uplink_factor();
  part.down = m.down();
  if (m.has_at_s()) part.at = seconds_rounded_up(m.at_s());
  if (m.has_for_s()) part.lasts = seconds_rounded_up(m.for_s());
  return part;
}

NetworkGraph network_from_message(const spec::Network& m) {
  NetworkGraph graph;
  for (const spec::Switch& entry : m.switches()) {
    graph.switches.push_back({entry.name(), entry.has_count() ? entry.count() : 1});
  }
  for (const spec::Hosts& entry : m.hosts()) {
    graph.hosts.push_back({entry.name(), entry.has_count() ? entry.count() : 1});
  }
  for (const spec::Trunk& link : m.links()) {
    graph.links.push_back({.from = link.from(),
                           .to = link.to(),
                           .nic = link.has_nic() ? link.nic() : -1,
                           .lanes = link.has_lanes() ? link.lanes() : 1,
                           .lane = gigabits(link.gigabits_per_second())});
  }
  return graph;
}

StorageNetwork storage_from_message(const spec::StorageNetwork& m) {
  return {.path = enum_cast<StorageNetwork::Path>(m.path()),
          .servers = m.servers(),
          .server = gigabits(m.server_gigabits_per_second()),
          .host = gigabits(m.host_gigabits_per_second()),
          .hosts_per_switch = m.hosts_per_switch(),
          .oversubscription = m.oversubscription()};
}

}  // namespace

void to_message(const ClusterSpec& c, spec::Cluster* m) {
  m->set_gpus_per_host(c.gpus_per_host);
  m->set_gpus_per_tor(c.gpus_per_tor);
  m->set_gpus_per_pod(c.gpus_per_pod);
  m->set_tor_uplinks(c.tor_uplinks);
  m->set_pod_oversubscription(c.pod_oversubscription);
  m->set_nvlink_gigabytes_per_second(in_gigabytes(c.nvlink));
  m->set_nic_gigabits_per_second(in_gigabits(c.nic));
  m->set_nic_efficiency(c.nic_efficiency);
  m->set_pcie_gigabytes_per_second(in_gigabytes(c.pcie));
  m->set_placement(enum_cast<spec::Cluster::Placement>(c.placement));
  m->set_unavailable_fraction(c.unavailable_fraction);
  m->set_rails(c.rails);
  m->set_planes(c.planes);
  m->set_switch_ports(c.switch_ports);
  m->set_torus_wraps(c.torus_wraps);
  m->set_local_lanes(c.local_lanes);
  m->set_global_lanes(c.global_lanes);
  m->set_detour_share(c.detour_share);
  m->set_in_network_reduction(c.in_network_reduction);
  m->set_queue_pairs(c.queue_pairs);
  m->set_routing(c.routing);
  m->set_nccl_version(c.nccl_version);
  m->set_buffers(c.buffers);
  m->set_send_window_kib(c.send_window.count() >> 10);
  m->set_collective_window_kib(c.collective_window.count() >> 10);
  m->set_tor_round_trip_us(c.tor_round_trip_us);
  m->set_pod_round_trip_us(c.pod_round_trip_us);
  m->set_core_round_trip_us(c.core_round_trip_us);
  spec::StorageNetwork* storage = m->mutable_storage_network();
  storage->set_path(enum_cast<spec::StorageNetwork::Path>(c.storage.path));
  storage->set_servers(c.storage.servers);
  storage->set_server_gigabits_per_second(in_gigabits(c.storage.server));
  storage->set_host_gigabits_per_second(in_gigabits(c.storage.host));
  storage->set_hosts_per_switch(c.storage.hosts_per_switch);
  storage->set_oversubscription(c.storage.oversubscription);
}

ClusterSpec cluster_from_message(const spec::Cluster& m) {
  ClusterSpec cluster{
      .name = m.name(),
      .topology = m.topology(),
      .gpus = m.gpus(),
      .gpus_per_host = m.gpus_per_host(),
      .gpus_per_tor = m.gpus_per_tor(),
      .gpus_per_pod = m.gpus_per_pod(),
      .tor_uplinks = m.tor_uplinks(),
      .pod_oversubscription = m.pod_oversubscription(),
      .rails = m.rails(),
      .planes = m.planes(),
      .switch_ports = m.switch_ports(),
      .nvlink = gigabytes(m.nvlink_gigabytes_per_second()),
      .nic = gigabits(m.nic_gigabits_per_second()),
      .nic_efficiency = m.nic_efficiency(),
      .pcie = gigabytes(m.pcie_gigabytes_per_second()),
      .placement = enum_cast<PlacementKind>(m.placement()),
      .unavailable_hosts = {m.unavailable_hosts().begin(), m.unavailable_hosts().end()},
      .unavailable_fraction = m.unavailable_fraction(),
      .torus = {m.torus().begin(), m.torus().end()},
      .torus_wraps = m.torus_wraps(),
      .local_lanes = m.local_lanes(),
      .global_lanes = m.global_lanes(),
      .detour_share = m.detour_share(),
      .network = network_from_message(m.network()),
      .in_network_reduction = m.in_network_reduction(),
      .queue_pairs = m.queue_pairs(),
      .routing = m.routing(),
      .nccl_version = m.nccl_version(),
      .buffers = m.buffers(),
      .send_window = kibibytes(m.send_window_kib()),
      .collective_window = kibibytes(m.collective_window_kib()),
      .tor_round_trip_us = m.tor_round_trip_us(),
      .pod_round_trip_us = m.pod_round_trip_us(),
      .core_round_trip_us = m.core_round_trip_us(),
      .storage = storage_from_message(m.storage_network())};
  for (const spec::Degraded& m_part : m.degraded()) {
    cluster.degraded.push_back(degradation_from_message(m_part));
  }
  return cluster;
}

}  // namespace herdsim

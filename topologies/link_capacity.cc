#include "topologies/link_capacity.h"

#include <algorithm>
#include <span>

#include "sim/base/check.h"

namespace herdsim {
namespace {

std::vector<NodeId> nodes_of(const Fabric& fabric, NodeKind kind) {
  std::vector<NodeId> found;
  for (size_t i = 0; i < fabric.nodes().size(); ++i) {
    if (fabric.nodes()[NodeId(i)].kind == kind) found.emplace_back(i);
  }
  return found;
}

// The factors of NICs and uplinks at one instant.
class Impairment {
 public:
  Impairment(const Fabric& fabric, const TypedVector<RankId, GpuId>& placement)
      : fabric_(fabric),
        placement_(placement),
        tors_(nodes_of(fabric, NodeKind::kTor)),
        pods_(nodes_of(fabric, NodeKind::kPod)),
        planes_(fabric.mesh() != nullptr ? 1 : fabric.nodes()[tors_.front()].count),
        nic_(fabric.gpus(), 1.0),
        up_(fabric.nodes().size(), 1.0) {}

  // Takes `part` into account. `from_the_start`: NCCL saw it when it set up its connections.
  void add(const Degradation& part, bool from_the_start) {
    if (part.gpu >= 0) add_nic(part, from_the_start);
    if (part.tor >= 0) {
      const NodeId tor = tor_of_device(part.tor);
      if (part.down) add_dead_tor(tor);
      up_[tor.index()] *= part.uplink_factor;
      touched_.push_back(tor);
    }
    if (part.pod >= 0) {
      const NodeId pod = pods_[static_cast<size_t>(part.pod)];
      up_[pod.index()] *= part.uplink_factor;
      touched_.push_back(pod);
    }
    if (part.plane >= 0 && part.down) {
      for (const NodeId tor : tors_) add_dead_tor(tor);
    }
  }

  // Calls visit(link, factor) for every link that a part touches, both directions.
  template <class Visit>
  void for_each_link(const Visit& visit) {
    move_dead_nics();
    if (planes_ > 1) pool_ports();
    for (const GpuId gpu : hurt_) visit_node(fabric_.nic_of(gpu), nic_[gpu.index()], visit);
    for (const NodeId node : touched_) visit_node(node, up_[node.index()], visit);
    if (fabric_.mesh() != nullptr) visit_mesh(visit);
  }

 private:
  template <class Visit>
  void visit_node(NodeId id, double factor, const Visit& visit) const {
    const Node& node = fabric_.nodes()[id];
    if (node.parent == id) return;  // a top has no uplinks
    visit(node.up, factor);
    visit(node.down(), factor);
  }

  // The cables between tops are as bad as the worse of their ends. On a torus those are NICs.
  template <class Visit>
  void visit_mesh(const Visit& visit) const {
    std::vector<double> end = up_;
    for (size_t gpu = 0; fabric_.torus() && gpu < fabric_.gpus(); ++gpu) {
      end[fabric_.nic_of(GpuId(gpu)).index()] = nic_[gpu];
    }
    for (size_t l = 0; l < fabric_.links().size(); ++l) {
      const Link& link = fabric_.links()[LinkId(l)];
      if (!is_mesh_link(link.kind)) continue;
      const double factor = std::min(end[link.from.index()], end[link.to.index()]);
      if (factor < 1) visit(LinkId(l), factor);
    }
  }

  void hurt(GpuId gpu, double factor) {
    nic_[gpu.index()] *= factor;
    hurt_.push_back(gpu);
  }

  void add_nic(const Degradation& part, bool from_the_start) {
    if (part.nic_factor == 1.0) return;
    HERDSIM_CHECK(static_cast<size_t>(part.gpu) < placement_.size())
        << "degraded rank " << part.gpu << " of " << placement_.size();
    const GpuId gpu = placement_[RankId(static_cast<size_t>(part.gpu))];
    hurt(gpu, part.nic_factor);
    if (part.nic_factor == 0 && from_the_start && planes_ == 1 && !fabric_.torus()) {
      moved_.push_back(gpu);
    }
  }

  // A ToR vertex stands for one device or several side by side.
  NodeId tor_of_device(int64_t device) const {
    for (const NodeId tor : tors_) {
      device -= fabric_.nodes()[tor].count;
      if (device < 0) return tor;
    }
    HERDSIM_CHECK(false) << "no such ToR";
    return tors_.back();
  }

  void add_dead_tor(NodeId tor) {
    const double left = 1 - 1.0 / static_cast<double>(fabric_.nodes()[tor].count);
    up_[tor.index()] *= left;
    touched_.push_back(tor);
    if (gpus_of_tor_.empty()) {
      gpus_of_tor_.resize(fabric_.nodes().size());
      for (size_t g = 0; g < fabric_.gpus(); ++g) {
        gpus_of_tor_[fabric_.tor_of(GpuId(g)).index()].emplace_back(g);
      }
    }
    for (const GpuId gpu : gpus_of_tor_[tor.index()]) hurt(gpu, left);
  }

  void move_dead_nics() {
    for (const GpuId gpu : moved_) {
      const GpuId beside(gpu.index() ^ 1);
      const bool there =
          beside.index() < fabric_.gpus() && fabric_.host_of(beside) == fabric_.host_of(gpu);
      if (!there || nic_[beside.index()] == 0) continue;
      const double half = nic_[beside.index()] / 2;
      nic_[gpu.index()] = nic_[beside.index()] = half;
      hurt_.push_back(beside);
    }
  }

  // The ports of a host carry its traffic together.
  void pool_ports() {
    const auto per_host = fabric_.gpus_per_host();
    std::vector<size_t> hosts;
    for (const GpuId gpu : hurt_) hosts.push_back(fabric_.host_of(gpu).index());
    std::sort(hosts.begin(), hosts.end());
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    hurt_.clear();
    for (const size_t host : hosts) {
      double sum = 0;
      for (size_t i = 0; i < per_host; ++i) sum += nic_[host * per_host + i];
      for (size_t i = 0; i < per_host; ++i) {
        nic_[host * per_host + i] = sum / static_cast<double>(per_host);
        hurt_.emplace_back(host * per_host + i);
      }
    }
  }

  const Fabric& fabric_;
  const TypedVector<RankId, GpuId>& placement_;
  const std::vector<NodeId> tors_, pods_;
  const size_t planes_;
  std::vector<double> nic_;  // by GPU
  std::vector<double> up_;   // by node: its cables upwards
  std::vector<GpuId> hurt_, moved_;
  std::vector<NodeId> touched_;
  std::vector<std::vector<GpuId>> gpus_of_tor_;  // by node; empty until a ToR is dead
};

Bandwidth scaled(Bandwidth nominal, double factor) {
  if (factor == 0) return Bandwidth();
  return std::max(Bandwidth::from_bytes_per_second(1), nominal * Ratio(factor));
}

bool is_active(const Degradation& part, Duration at) {
  return part.at <= at && (part.lasts == Duration::infinite() || at < part.at + part.lasts);
}

TypedVector<LinkId, Bandwidth> nominal_capacities(const Fabric& fabric, const ClusterSpec& spec) {
  TypedVector<LinkId, Bandwidth> capacity;
  capacity.reserve(fabric.links().size());
  const Ratio efficiency(spec.nic_efficiency);
  const auto usable = [&](LinkKind kind, Bandwidth line_rate) {
    const bool network = kind != LinkKind::kNvLink && kind != LinkKind::kPcie;
    return network ? line_rate * efficiency : line_rate;
  };
  // Nearly all links are of a run of equal ones.
  const std::span<const CableRun> runs = fabric.cable_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const size_t end = i + 1 < runs.size() ? runs[i + 1].first : fabric.tree_cables();
    const Bandwidth of_run = usable(runs[i].kind, runs[i].capacity);
    while (capacity.size() < 2 * end) capacity.push_back(of_run);
  }
  while (capacity.size() < fabric.links().size()) {
    const Link link = fabric.links()[LinkId(capacity.size())];
    capacity.push_back(usable(link.kind, link.capacity));
  }
  return capacity;
}

// Instants at which some part changes, the step's begin among them.
std::vector<Duration> instants_of_change(const ClusterSpec& spec) {
  std::vector<Duration> instants = {Duration::zero()};
  for (const Degradation& part : spec.degraded) {
    if (part.is_lasting()) continue;
    instants.push_back(part.at);
    if (part.lasts != Duration::infinite()) instants.push_back(part.at + part.lasts);
  }
  std::sort(instants.begin(), instants.end());
  instants.erase(std::unique(instants.begin(), instants.end()), instants.end());
  return instants;
}

}  // namespace

LinkConditions link_conditions(const Fabric& fabric, const ClusterSpec& spec,
                               const TypedVector<RankId, GpuId>& placement) {
  LinkConditions out;
  out.capacity = nominal_capacities(fabric, spec);
  if (spec.degraded.empty()) return out;
  const TypedVector<LinkId, Bandwidth> nominal = out.capacity;
  TypedVector<LinkId, Bandwidth> now = nominal;
  for (const Duration at : instants_of_change(spec)) {
    Impairment impairment(fabric, placement);
    for (const Degradation& part : spec.degraded) {
      if (is_active(part, at)) impairment.add(part, part.is_lasting());
    }
    TypedVector<LinkId, Bandwidth> next = nominal;
    impairment.for_each_link([&](LinkId link, double factor) {
      next[link] = scaled(nominal[link], factor);
      out.impaired.push_back(link);
    });
    if (at == Duration::zero()) out.capacity = next;
    for (size_t l = 0; at > Duration::zero() && l < next.size(); ++l) {
      const LinkId link(l);
      if (next[link] != now[link]) out.changes.push_back({at, link, next[link]});
    }
    now = std::move(next);
  }
  std::sort(out.impaired.begin(), out.impaired.end());
  out.impaired.erase(std::unique(out.impaired.begin(), out.impaired.end()), out.impaired.end());
  return out;
}

TypedVector<LinkId, Bandwidth> link_capacities(const Fabric& fabric, const ClusterSpec& spec,
                                               const TypedVector<RankId, GpuId>& placement) {
  return link_conditions(fabric, spec, placement).capacity;
}

}  // namespace herdsim

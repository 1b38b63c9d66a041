#include "sim/symmetry/job_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"
#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

class JobMapper {
 public:
  JobMapper(const RankGrid& grid, const TransferPattern& pattern, const Machine& machine,
            GroupShapes& shapes, const RankBlocks& blocks)
      : grid_(grid), pattern_(pattern), machine_(machine), shapes_(shapes), blocks_(blocks) {
    map_.blocks = blocks;
  }

  JobMap map() {
    for (const TransferPattern::Collectives& collectives : pattern_.collectives) {
      add_collective_lane(collectives);
    }
    map_messages();
    drop_unshared_links();
    bound_by_routing();
    return std::move(map_);
  }

 private:
  GpuId gpu_of(RankId rank) const { return machine_.placement[rank]; }

  // Valid until the next call.
  std::span<const GpuId> members(Communicator c, size_t group) {
    grid_.list_members(CommGroupId(group), c, ranks_);
    members_.clear();
    for (const RankId rank : ranks_) members_.push_back(gpu_of(rank));
    return members_;
  }

  // Closes the path of the lane's next instance. Paths are much alike, so the first one says how
  // much memory all take: growing step by step would touch three times as much.
  void end_path(Lane& lane) {
    for (const Crossing& crossing : path_) {
      HERDSIM_CHECK(crossing.count <= std::numeric_limits<uint32_t>::max()) << crossing.count;
      lane.crossings.push_back({crossing.link, static_cast<uint32_t>(crossing.count)});
    }
    path_.clear();
    if (lane.first_crossing.empty()) {
      lane.first_crossing.reserve(lane.listed() + 1);
      lane.first_crossing.push_back(0);
      lane.crossings.reserve(lane.crossings.size() * lane.listed());
    }
    lane.first_crossing.push_back(static_cast<uint32_t>(lane.crossings.size()));
  }

  void add_collective_lane(const TransferPattern::Collectives& collectives) {
    const Communicator c = collectives.communicator;
    const CommunicatorShapes& shapes = shapes_.of(c);
    Lane lane;
    std::vector<Connection> connections;
    int64_t sharing = 1;
    const bool collides = machine_.spread.rule != SpreadRule::kEven;
    lane.communicator = c;
    lane.instances = grid_.group_count(c);
    lane.alike = blocks_.groups_of(grid_, c);
    lane.shapes = shapes.shapes;
    for (size_t i = 0; i < lane.listed(); ++i) {
      const size_t group = i * lane.alike;
      lane.shape_of.push_back(shapes.shape_of[group]);
      const GroupLoad& load = collectives.loads[lane.shape_of.back()];
      const CollectivePlan plan = load.plan();
      const bool connects = plan.nic_crossings != 0 && collides;
      if (!load.loads_nothing() || connects) {
        const std::span<const GpuId> gpus = members(c, group);
        if (!load.loads_nothing()) append_path(lane, gpus, plan);
        if (connects) {
          const size_t begin = connections.size();
          sharing = std::max(sharing, append_connections(machine_.fabric, gpus, plan, connections));
          append_turned(begin, lane.alike, connections);
        }
      }
      end_path(lane);
    }
    // Phases in hosts meet no switch, however far apart the hosts of their group are.
    const bool uses_nics =
        std::any_of(collectives.loads.begin(), collectives.loads.end(),
                    [](const GroupLoad& load) { return load.nic_crossings != 0; });
    if (uses_nics) lane.spread = spread_of(connections, sharing);
    add_lane(std::move(lane));
  }

  // Of a group that is turned in itself, the first link of each orbit.
  void append_path(const Lane& lane, std::span<const GpuId> gpus, const CollectivePlan& plan) {
    const bool lists_all = lane.alike == blocks_.ranks;
    if (!lists_all && plan.nic_crossings == 0 && plan.algorithm == Algorithm::kRing) {
      // Ports in hosts: nothing that one member crosses depends on the others.
      first_gpus_.clear();
      for (size_t i = 0; i < gpus.size(); i += blocks_.ranks) first_gpus_.push_back(gpus[i]);
      return append_group_path(machine_.fabric, first_gpus_, plan, path_);
    }
    append_group_path(machine_.fabric, gpus, plan, path_);
    if (lists_all) return;
    list_first_links(gpus);
    std::erase_if(path_, [&](const Crossing& crossing) {
      return blocks_.links[kind_of(crossing.link)] > 1 &&
             !std::binary_search(first_links_.begin(), first_links_.end(), crossing.link);
    });
  }

  // Those that others of their orbit follow, from the GPUs of the group up to their ToRs' uplinks.
  void list_first_links(std::span<const GpuId> gpus) {
    const Fabric& fabric = machine_.fabric;
    first_links_.clear();
    for (size_t i = 0; i < gpus.size(); i += blocks_.ranks) {
      const NodeId nic = fabric.nic_of(gpus[i]), tor = fabric.tor_of(gpus[i]);
      for (const LinkId out :
           {fabric.nvlink_out(gpus[i]), fabric.nodes()[fabric.node_of(gpus[i])].up,
            fabric.nodes()[nic].up, fabric.nodes()[tor].up}) {
        first_links_.push_back(out);
        first_links_.emplace_back(out.index() + 1);
      }
    }
    std::sort(first_links_.begin(), first_links_.end());
  }

  // Of the groups or messages of an orbit, those after the first: their connections are as many
  // GPUs on as they are instances.
  static void append_turned(size_t begin, size_t alike, std::vector<Connection>& connections) {
    const size_t end = connections.size();
    for (size_t t = 1; t < alike; ++t) {
      for (size_t i = begin; i < end; ++i) {
        const Connection first = connections[i];
        connections.push_back({GpuId(first.from.index() + t), GpuId(first.to.index() + t)});
      }
    }
  }

  // Lanes are seeded by their number, so that one more does not change the others' draws.
  SpreadEffect spread_of(const std::vector<Connection>& connections, int64_t sharing) {
    if (!bundles_) {
      bundles_.emplace(machine_.fabric, [&](LinkId link) { return working_lanes(link); });
    }
    return connection_slowdown(machine_.fabric, *bundles_, connections, sharing, machine_.spread,
                               mix64(machine_.seed ^ map_.lanes.size()));
  }

  uint32_t working_lanes(LinkId id) const {
    const Link link = machine_.fabric.links()[id];
    const double whole = link.capacity.gigabytes_per_second() * machine_.line_share;
    const double left = machine_.capacity[id].gigabytes_per_second() / whole;
    return static_cast<uint32_t>(
        std::clamp(std::round(left * link.width), 1.0, static_cast<double>(link.width)));
  }

  // The hop class says whether a transfer leaves its ToR.
  void bound_by_routing() {
    const Fabric& fabric = machine_.fabric;
    const Link& nic = fabric.links()[fabric.nodes()[fabric.nic_of(GpuId(0))].up];
    for (Lane& lane : map_.lanes) {
      if (lane.spread.worst <= 1) continue;
      const Bandwidth bound =
          bytes_per_second(static_cast<double>(nic.capacity.bytes_per_second()) *
                           machine_.line_share / lane.spread.worst);
      for (size_t i = 0; i < lane.listed(); ++i) {
        if (lane.shapes[lane.shape_of[i]].farthest < HopClass::kSamePod) continue;
        lane.own_bound[i] = std::min(lane.own_bound[i], bound);
      }
    }
  }

  void map_messages() {
    map_.peers = pattern_.peers;
    size_t slots = 0;
    for (const std::vector<ProgramId>& peers : map_.peers) slots = std::max(slots, peers.size());
    for (size_t slot = 0; slot < slots; ++slot) map_.message_lane.push_back(message_lane(slot));
  }

  uint32_t message_lane(size_t slot) {
    Lane lane;
    lane.is_message = true;
    lane.slot = slot;
    lane.instances = grid_.ranks();
    lane.alike = blocks_.ranks;
    lane.shapes.push_back(GroupShape{});               // of ranks that send nothing here
    std::array<uint32_t, kHopClasses> shape_of_hop{};  // pairs of one hop class have one shape
    std::vector<Connection> connections;
    lane.shape_of.reserve(lane.listed());
    for (size_t i = 0; i < lane.listed(); ++i) {
      const RankId rank(i * lane.alike);
      const std::vector<ProgramId>& peers =
          map_.peers[ProgramId(grid_.coordinate(rank, Axis::kPp))];
      uint32_t shape = 0;
      if (slot < peers.size()) {
        const GpuId from = gpu_of(rank);
        const GpuId to = gpu_of(grid_.with(rank, Axis::kPp, peers[slot].index()));
        uint32_t& known = shape_of_hop[static_cast<size_t>(machine_.fabric.hop_class(from, to))];
        // On a torus the distance counts as well.
        if (known == 0 || machine_.fabric.torus()) {
          const std::array<GpuId, 2> pair = {from, to};
          known = index_of_shape(lane.shapes, group_shape(machine_.fabric, pair));
        }
        shape = known;
        append_point_to_point_path(machine_.fabric, from, to, path_);
        if (lane.shapes[shape].farthest >= HopClass::kSamePod) {
          connections.push_back({from, to});
          append_turned(connections.size() - 1, lane.alike, connections);
        }
      }
      lane.shape_of.push_back(shape);
      end_path(lane);
    }
    lane.spread = spread_of(connections, 1);
    return add_lane(std::move(lane));
  }

  uint32_t add_lane(Lane lane) {
    map_.lanes.push_back(std::move(lane));
    return static_cast<uint32_t>(map_.lanes.size() - 1);
  }

  // Whether each link of the kind is crossed by one instance at most, of one collective lane: a
  // communicator runs one collective at a time, so nothing ever shares such a link.
  std::array<bool, kLinkKinds> unshared_kinds() const {
    std::array<int, kLinkKinds> users{};
    std::array<bool, kLinkKinds> shared{};
    std::vector<uint8_t> crossed(machine_.fabric.links().size(), 0);
    for (const Lane& lane : map_.lanes) {
      std::array<bool, kLinkKinds> uses{};
      for (const LaneCrossing& crossing : lane.crossings) {
        const auto kind = static_cast<size_t>(machine_.fabric.links()[crossing.link].kind);
        uses[kind] = true;
        uint8_t& seen = crossed[crossing.link.index()];
        if (seen != 0 || lane.is_message || lane.crossed_by(blocks_.links[kind]) > 1) {
          shared[kind] = true;
        }
        seen = 1;
      }
      for (size_t k = 0; k < kLinkKinds; ++k) users[k] += uses[k] ? 1 : 0;
    }
    // A link that carries nothing for a while, or at all, is no bound that a constant can state.
    for (const CapacityChange& change : machine_.changes) shared[kind_of(change.link)] = true;
    if (carries_nothing_somewhere()) {
      for (size_t l = 0; l < machine_.capacity.size(); ++l) {
        if (machine_.capacity[LinkId(l)] == Bandwidth()) shared[kind_of(LinkId(l))] = true;
      }
    }
    // What leaves the hosts of a job may meet another job's.
    for (size_t k = 0; k < kLinkKinds; ++k) {
      shared[k] = shared[k] || machine_.shares_hosts || (machine_.is_shared && !is_of_host(k));
    }
    std::array<bool, kLinkKinds> unshared{};
    // Links between tops are no ports of their own of anybody.
    for (size_t k = 0; k < kLinkKinds; ++k) {
      unshared[k] = users[k] == 1 && !shared[k] && !is_mesh_link(static_cast<LinkKind>(k));
    }
    return unshared;
  }

  // No early end, so that a compiler looks at many links at a time: there hardly ever is one.
  bool carries_nothing_somewhere() const {
    bool found = false;
    for (const Bandwidth capacity : machine_.capacity) found |= capacity == Bandwidth();
    return found;
  }

  static bool is_of_host(size_t kind) {
    return kind == static_cast<size_t>(LinkKind::kNvLink) ||
           kind == static_cast<size_t>(LinkKind::kPcie) ||
           kind == static_cast<size_t>(LinkKind::kNicToTor);
  }

  size_t kind_of(LinkId link) const {
    return static_cast<size_t>(machine_.fabric.links()[link].kind);
  }

  void drop_unshared_links() {
    const std::array<bool, kLinkKinds> unshared = unshared_kinds();
    for (Lane& lane : map_.lanes) {
      lane.own_bound.assign(lane.listed(), Bandwidth::unlimited());
      // Only collective lanes have such links, see unshared_kinds().
      if (!lane.is_message) drop_links(lane, unshared);
    }
  }

  void drop_links(Lane& lane, const std::array<bool, kLinkKinds>& kinds) const {
    std::array<OwnLinks, kLinkKinds> own{};
    uint32_t kept = 0, read = 0;
    for (size_t i = 0; i < lane.listed(); ++i) {
      for (const uint32_t end = lane.first_crossing[i + 1]; read < end; ++read) {
        const LaneCrossing crossing = lane.crossings[read];
        const LinkKind kind = machine_.fabric.links()[crossing.link].kind;
        if (kinds[static_cast<size_t>(kind)]) {
          OwnLinks& of_kind = own[static_cast<size_t>(kind)];
          const size_t alike = lane.alike * lane.links_crossed(blocks_.links_of(kind));
          of_kind = {kind, std::max<int64_t>(of_kind.count, crossing.count), of_kind.links + alike};
          lane.own_bound[i] =
              std::min(lane.own_bound[i], machine_.capacity[crossing.link] / crossing.count);
        } else {
          lane.crossings[kept++] = crossing;
        }
      }
      lane.first_crossing[i + 1] = kept;
    }
    lane.crossings.resize(kept);
    lane.crossings.shrink_to_fit();
    for (const OwnLinks& of_kind : own) {
      if (of_kind.links > 0) lane.own_links.push_back(of_kind);
    }
  }

  const RankGrid& grid_;
  const TransferPattern& pattern_;
  const Machine& machine_;
  GroupShapes& shapes_;
  const RankBlocks blocks_;
  JobMap map_;
  std::vector<RankId> ranks_;
  std::vector<GpuId> members_;
  std::vector<Crossing> path_;     // of the instance at hand
  std::vector<GpuId> first_gpus_;  // of the blocks of a group
  std::vector<LinkId> first_links_;
  std::optional<LaneBundles> bundles_;
};

}  // namespace

JobMap map_lanes(const RankGrid& grid, const TransferPattern& pattern, const Machine& machine,
                 GroupShapes& shapes, const RankBlocks& blocks) {
  HERDSIM_CHECK(machine.placement.size() >= grid.ranks()) << "ranks without a GPU";
  return JobMapper(grid, pattern, machine, shapes, blocks).map();
}

JobMap map_job(const OpGraph& graph, const Machine& machine) {
  HERDSIM_CHECK(machine.placement.size() >= graph.grid.ranks()) << "ranks without a GPU";
  GroupShapes shapes(graph.grid, machine.fabric, machine.placement);
  GraphPattern of = transfer_pattern(graph, machine.tuning, shapes);
  JobMap map = map_lanes(graph.grid, of.pattern, machine, shapes);
  map.lane_of_work = std::move(of.collectives_of);
  return map;
}

}  // namespace herdsim

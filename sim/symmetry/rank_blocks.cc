#include "sim/symmetry/rank_blocks.h"

#include <algorithm>
#include <numeric>

namespace herdsim {
namespace {

class HostCheck {
 public:
  explicit HostCheck(const Machine& machine) : fabric_(machine.fabric), machine_(machine) {}

  AlikeGpus find() const {
    const auto& placement = machine_.placement;
    // The routes of a mesh, and what changes during the step, tell GPUs apart.
    if (fabric_.mesh() != nullptr || fabric_.torus() || !machine_.changes.empty()) return {};
    const size_t block = std::gcd(placement.size(), fabric_.gpus_per_host());
    if (block <= 1) return {};
    const GpuId first = placement[RankId(0)];
    if (first.index() % block != 0) return {};
    const NodeId first_tor = fabric_.tor_of(first);
    size_t tors = 1;
    while (tors < block && fabric_.tor_of(GpuId(first.index() + tors)) != first_tor) ++tors;
    if (block % tors != 0) return {};
    for (size_t r = 0; r < placement.size(); r += block) {
      if (!is_alike(RankId(r), block, tors, first_tor)) return {};
    }
    return {block, tors};
  }

 private:
  bool is_alike(RankId rank, size_t block, size_t tors, NodeId first_tor) const {
    const GpuId gpu = machine_.placement[rank];
    if (gpu.index() % block != 0) return false;
    const NodeId nic = fabric_.nic_of(gpu), tor = fabric_.tor_of(gpu);
    // ToRs come in groups of `tors` consecutive ones, each for one place in a block.
    if (tor.index() % tors != first_tor.index() % tors) return false;
    for (size_t t = 1; t < block; ++t) {
      const RankId other(rank.index() + t);
      const GpuId at = machine_.placement[other];
      if (at.index() != gpu.index() + t || fabric_.nic_of(at).index() != nic.index() + t ||
          fabric_.tor_of(at).index() != tor.index() + t % tors ||
          machine_.compute_factor[other] != machine_.compute_factor[rank] ||
          !are_alike(fabric_.nvlink_out(gpu), fabric_.nvlink_out(at), t) ||
          !have_alike_cables(fabric_.node_of(gpu), t) || !have_alike_cables(nic, t)) {
        return false;
      }
    }
    for (size_t t = 1; t < tors; ++t) {
      const NodeId other(tor.index() + t);
      if (fabric_.nodes()[other].parent != fabric_.nodes()[tor].parent ||
          !have_alike_cables(tor, t)) {
        return false;
      }
    }
    return true;
  }

  // Of a node and the `distance`-th after it, to their parents.
  bool have_alike_cables(NodeId node, size_t distance) const {
    const Node& a = fabric_.nodes()[node];
    const Node& b = fabric_.nodes()[NodeId(node.index() + distance)];
    return are_alike(a.up, b.up, distance);
  }

  // Both directions. Their links are `distance` cables apart, so that orbits are in order.
  bool are_alike(LinkId a, LinkId b, size_t distance) const {
    if (b.index() != a.index() + 2 * distance) return false;
    for (const size_t way : {size_t{0}, size_t{1}}) {
      const LinkId x(a.index() + way), y(b.index() + way);
      if (machine_.capacity[x] != machine_.capacity[y] ||
          fabric_.can_bind(x) != fabric_.can_bind(y)) {
        return false;
      }
    }
    return true;
  }

  const Fabric& fabric_;
  const Machine& machine_;
};

}  // namespace

AlikeGpus alike_gpus(const Machine& machine) { return HostCheck(machine).find(); }

RankBlocks rank_blocks(const RankGrid& grid, const AlikeGpus& alike) {
  RankBlocks blocks;
  const size_t ranks = grid.block_of_one_axis(alike.ranks);
  // A block must meet its ToRs equally often.
  if (ranks == 1 || (ranks % alike.tors != 0 && alike.tors % ranks != 0)) return blocks;
  blocks.ranks = ranks;
  for (const LinkKind kind : {LinkKind::kNvLink, LinkKind::kPcie, LinkKind::kNicToTor}) {
    blocks.links[static_cast<size_t>(kind)] = static_cast<uint32_t>(ranks);
  }
  blocks.links[static_cast<size_t>(LinkKind::kTorToPod)] =
      static_cast<uint32_t>(std::min(ranks, alike.tors));
  return blocks;
}

bool is_even_in_blocks(std::span<const UnevenLoad> loads, size_t block) {
  for (const UnevenLoad& load : loads) {
    if (load.empty()) continue;
    for (size_t r = 0; r < load.row.size(); ++r) {
      if (load.row[r] != load.row[r - r % block]) return false;
    }
  }
  return true;
}

}  // namespace herdsim

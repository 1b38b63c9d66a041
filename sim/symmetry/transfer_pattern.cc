#include "sim/symmetry/transfer_pattern.h"

#include <algorithm>
#include <utility>

#include "sim/collectives/group_path.h"
#include "sim/collectives/nccl_tuning.h"

namespace herdsim {
namespace {

// A message of a few kilobytes is latency and nothing else: it takes part in no sharing.
constexpr Bytes kLatencyOnly = kibibytes(64);

GroupLoad load_of(const Work& work, const GroupShape& shape, const NcclTuning& tuning) {
  if (work.bytes <= kLatencyOnly) return {};
  const CollectivePlan plan = plan_of(work, shape, tuning);
  const bool has_own_path = plan.algorithm == Algorithm::kPairwise ||
                            plan.algorithm == Algorithm::kCollNet || is_of_store(plan.algorithm);
  return {has_own_path ? plan.algorithm : Algorithm::kRing, plan.part, plan.nic_crossings,
          plan.nvlink_crossings, plan.disk_crossings};
}

// There are many more ops than works, and a work is large: whether it is a send is kept in a byte.
TypedVector<WorkId, uint8_t> sends_of(const TypedVector<WorkId, Work>& works) {
  TypedVector<WorkId, uint8_t> is_send;
  is_send.reserve(works.size());
  for (const Work& work : works) is_send.push_back(work.kind == WorkKind::kSend ? 1 : 0);
  return is_send;
}

std::vector<ProgramId> peers_of(const Program& program,
                                const TypedVector<WorkId, uint8_t>& is_send) {
  std::vector<ProgramId> peers;
  for (const Op& op : program.ops) {
    if (is_send[op.work] == 0) continue;
    if (std::find(peers.begin(), peers.end(), op.peer) == peers.end()) peers.push_back(op.peer);
  }
  std::sort(peers.begin(), peers.end());
  return peers;
}

}  // namespace

CollectivePlan GroupLoad::plan() const {
  CollectivePlan plan;
  plan.algorithm = path;
  plan.part = part;
  plan.nic_crossings = nic_crossings;
  plan.nvlink_crossings = nvlink_crossings;
  plan.disk_crossings = disk_crossings;
  return plan;
}

uint32_t index_of_shape(std::vector<GroupShape>& shapes, const GroupShape& shape) {
  const auto at = std::find(shapes.begin(), shapes.end(), shape) - shapes.begin();
  if (at == static_cast<ptrdiff_t>(shapes.size())) shapes.push_back(shape);
  return static_cast<uint32_t>(at);
}

const CommunicatorShapes& GroupShapes::of(Communicator c) {
  CommunicatorShapes& entry = shapes_[static_cast<size_t>(c)];
  std::call_once(found_[static_cast<size_t>(c)], [&] {
    std::vector<RankId> ranks;
    std::vector<GpuId> members;
    const size_t alike = blocks_.groups_of(grid_, c);
    for (size_t g = 0; g < grid_.group_count(c); g += alike) {
      grid_.list_members(CommGroupId(g), c, ranks);
      members.clear();
      for (const RankId rank : ranks) members.push_back(placement_[rank]);
      const uint32_t shape = index_of_shape(entry.shapes, group_shape(fabric_, members));
      entry.shape_of.insert(entry.shape_of.end(), alike, shape);
    }
  });
  return entry;
}

GraphPattern transfer_pattern(const OpGraph& graph, const NcclTuning& tuning, GroupShapes& shapes) {
  GraphPattern out;
  std::vector<TransferPattern::Collectives>& lanes = out.pattern.collectives;
  out.collectives_of.assign(graph.works.size(), 0);
  for (size_t w = 0; w < graph.works.size(); ++w) {
    const Work& work = graph.works[WorkId(w)];
    if (work.kind != WorkKind::kCollective) continue;
    TransferPattern::Collectives lane{work.communicator, {}};
    for (const GroupShape& shape : shapes.of(work.communicator).shapes) {
      lane.loads.push_back(load_of(work, shape, tuning));
    }
    const auto same = std::find(lanes.begin(), lanes.end(), lane) - lanes.begin();
    if (same == static_cast<ptrdiff_t>(lanes.size())) lanes.push_back(std::move(lane));
    out.collectives_of[WorkId(w)] = static_cast<uint32_t>(same);
  }
  const TypedVector<WorkId, uint8_t> is_send = sends_of(graph.works);
  for (const Program& program : graph.programs) {
    out.pattern.peers.push_back(peers_of(program, is_send));
  }
  return out;
}

}  // namespace herdsim

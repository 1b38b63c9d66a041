// What decides where a job's transfers run, whatever they carry: between which ranks, and how often
// each crosses the links it loads. Many plans of a search agree in it, and then have one map and
// one folding (folded_jobs.h).
//
//   GroupShapes shapes(graph.grid, machine.fabric, machine.placement);
//   GraphPattern of = transfer_pattern(graph, machine.tuning, shapes);
//   JobMap map = map_lanes(graph.grid, of.pattern, machine, shapes);
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "sim/base/ids.h"
#include "sim/collectives/collective.h"
#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/rank_blocks.h"

namespace herdsim {

struct NcclTuning;  // sim/collectives/nccl_tuning.h

// Distinct shapes of a communicator's groups, and which one each group has.
struct CommunicatorShapes {
  std::vector<GroupShape> shapes;
  std::vector<uint32_t> shape_of;  // by CommGroupId
};

// Those of a grid on a machine, each communicator's found when it is first asked for. May be asked
// by several threads. Grid, fabric and placement must outlive this object.
class GroupShapes {
 public:
  GroupShapes(const RankGrid& grid, const Fabric& fabric,
              const TypedVector<RankId, GpuId>& placement, const RankBlocks& blocks = {})
      : grid_(grid), fabric_(fabric), placement_(placement), blocks_(blocks) {}
  // Complexity: the first time, O(ranks).
  const CommunicatorShapes& of(Communicator communicator);

 private:
  const RankGrid& grid_;
  const Fabric& fabric_;
  const TypedVector<RankId, GpuId>& placement_;
  const RankBlocks blocks_;
  std::array<std::once_flag, kCommunicators> found_;
  std::array<CommunicatorShapes, kCommunicators> shapes_;
};

// Where the shape is among `shapes`; appends it where it is new.
uint32_t index_of_shape(std::vector<GroupShape>& shapes, const GroupShape& shape);

// How a collective loads the links of a group.
struct GroupLoad {
  Algorithm path = Algorithm::kRing;  // of those that go another way than a ring their own
  GroupPart part = GroupPart::kAll;
  int64_t nic_crossings = 0, nvlink_crossings = 0, disk_crossings = 0;

  bool loads_nothing() const { return nic_crossings == 0 && nvlink_crossings == 0; }
  // With nothing else in it, for the functions of sim/collectives/group_path.h.
  CollectivePlan plan() const;
  friend bool operator==(const GroupLoad&, const GroupLoad&) = default;
};

struct TransferPattern {
  struct Collectives {
    Communicator communicator;
    std::vector<GroupLoad> loads;  // by shape
    friend bool operator==(const Collectives&, const Collectives&) = default;
  };
  std::vector<Collectives>
      collectives;  // distinct ones, in the order of the works that ask for them
  // By program: the programs it sends to, ascending.
  TypedVector<ProgramId, std::vector<ProgramId>> peers;
  friend bool operator==(const TransferPattern& a, const TransferPattern& b) {
    return a.collectives == b.collectives && a.peers.values() == b.peers.values();
  }
};

struct GraphPattern {
  TransferPattern pattern;
  TypedVector<WorkId, uint32_t>
      collectives_of;  // of each collective work: index into pattern.collectives
};

// Complexity: O(works + ops).
GraphPattern transfer_pattern(const OpGraph& graph, const NcclTuning& tuning, GroupShapes& shapes);

}  // namespace herdsim

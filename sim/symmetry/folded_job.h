// The job as the executor runs it: one member of every class, with crossing counts that make sharing exact.
//
// A folded transfer stands for its class. It crosses a folded link as often as all members of its class cross the one
// representative link, so the rate that sharing gives it is the rate each member gets. An unfolded job has the same
// form with classes of one; whoever runs it cannot tell the difference.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/symmetry/job_map.h"
#include "sim/symmetry/rank_classes.h"

namespace herdsim {

using RankClassId = Id<struct RankClassTag>;

struct FoldedRank {
  RankId representative;
  int64_t members = 1;
  ProgramId program;
  double compute_factor = 1.0;
};

struct FoldedTransfer {
  uint32_t shape = 0;      // index into FoldedLane::shapes
  uint32_t instance = 0;   // the representative, as JobMap numbers it
  int64_t instances = 1;   // how many it stands for
  Bandwidth own_bound;
  uint32_t first_crossing = 0, crossings = 0;
  uint32_t first_member = 0, members = 0;  // of a collective: the rank classes that meet in it
};

struct FoldedLane {
  bool is_message = false;
  Communicator communicator = Communicator::kTensor;  // of collectives
  size_t instances = 0;                                // that all transfers stand for
  SpreadEffect spread;                                 // of all of them
  std::vector<OwnLinks> own_links;
  std::vector<GroupShape> shapes;
  std::vector<FoldedTransfer> transfers;
  std::vector<Crossing> crossings;  // LinkId: index of the link class
  std::vector<RankClassId> members;
  std::vector<uint32_t> transfer_of;  // by rank class

  std::span<const Crossing> path(const FoldedTransfer& t) const {
    return {crossings.data() + t.first_crossing, t.crossings};
  }
  std::span<const RankClassId> members_of(const FoldedTransfer& t) const {
    return {members.data() + t.first_member, t.members};
  }
};

struct FoldedJob {
  TypedVector<RankClassId, FoldedRank> ranks;
  std::vector<FoldedLane> lanes;  // as in JobMap
  TypedVector<LinkId, Bandwidth> capacity;  // of one link, by link class
  std::vector<LinkId> representative_link;  // by link class
  // By link class: how many it stands for, of them those away from the GPUs and those towards them.
  struct Directions {
    int64_t up = 0, down = 0;
  };
  std::vector<Directions> links_of_class;
  std::vector<CapacityChange> changes;      // LinkId: index of the link class; by time
  // As in JobMap.
  TypedVector<WorkId, uint32_t> lane_of_work;
  TypedVector<ProgramId, std::vector<ProgramId>> peers;
  std::vector<uint32_t> message_lane;
  // By rank class and message slot: who receives.
  TypedVector<RankClassId, std::vector<RankClassId>> receivers;
  std::vector<uint32_t> class_of_rank;
};

FoldedJob fold(const OpGraph& graph, const Machine& machine, const JobMap& map,
               const JobClasses& classes);

}  // namespace herdsim

// Where the transfers of a job run: every group of every communicator and every pair of neighbouring stages, with the
// links it crosses. The whole job, nothing folded; rank_classes.h groups what is interchangeable.
//
// A *lane* is one kind of transfer: a communicator with one way of loading links, or the messages of one peer slot. An
// *instance* is one lane's transfer somewhere: a group, or a sending rank. Instances of a lane are numbered from 0 (groups by
// CommGroupId, messages by sending rank).
//
// Where blocks of ranks are alike (rank_blocks.h) a map lists one instance of those that turning makes of each other, and of
// its links those that are the first of theirs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/ids.h"
#include "sim/collectives/collective.h"
#include "sim/fabric/crossing.h"
#include "sim/fabric/fabric.h"
#include "sim/fabric/lane_spread.h"
#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/machine.h"
#include "sim/symmetry/rank_blocks.h"
#include "sim/symmetry/transfer_pattern.h"

namespace herdsim {

// A Crossing in half the memory: a large job has millions.
struct LaneCrossing {
  LinkId link;
  uint32_t count = 1;
};

// Links of one kind that a lane's transfers do not list because only this lane uses them: how often an instance crosses
// one of them, and over how many links all instances go.
struct OwnLinks {
  LinkKind kind;
  int64_t count = 1;
  size_t links = 0;
};

struct Lane {
  bool is_message = false;
  Communicator communicator = Communicator::kTensor;  // of collectives
  size_t slot = 0;                                     // of messages: index into JobMap::peers
  size_t instances = 0;
  size_t alike = 1;  // each listed one stands for so many: the i-th for instance i * alike and those after it

  std::vector<GroupShape> shapes;        // distinct ones
  std::vector<uint32_t> shape_of;        // by listed instance
  std::vector<Bandwidth> own_bound;      // by listed instance: of the links that only this transfer uses
  std::vector<uint32_t> first_crossing;  // by listed instance, and one more
  std::vector<LaneCrossing> crossings;   // of links that others may use and that can bind
  SpreadEffect spread;                   // what the routing makes of those that leave their ToRs
  std::vector<OwnLinks> own_links;

  size_t listed() const { return instances / alike; }
  std::span<const LaneCrossing> path(size_t listed_instance) const {
    return {crossings.data() + first_crossing[listed_instance],
            first_crossing[listed_instance + 1] - first_crossing[listed_instance]};
  }
  // Of the links of an orbit of so many: how many a listed instance crosses, and how many of those that it stands for cross
  // the first of them.
  size_t links_crossed(size_t in_orbit) const { return alike == 1 ? in_orbit : 1; }
  size_t crossed_by(size_t in_orbit) const { return alike == 1 ? 1 : alike / in_orbit; }
};

struct JobMap {
  RankBlocks blocks;
  std::vector<Lane> lanes;
  TypedVector<WorkId, uint32_t> lane_of_work;  // of collectives
  // By program: the programs it sends to, one message lane slot each.
  TypedVector<ProgramId, std::vector<ProgramId>> peers;
  std::vector<uint32_t> message_lane;  // by slot
};

// A path leaves out the kinds of link that only one collective lane uses and whose instances never share one: what such a
// link allows is the transfer's own bound, and the network need not know (NVLink under tensor parallelism, as a rule).
// Transfers that leave their ToR are also bound by what the routing makes of a NIC: its line rate over the slowdown of the
// slowest connection of the lane (sim/fabric/lane_spread.h).
// Requires: placement covers the graph's ranks; every Receive of the graph has its send.
JobMap map_job(const OpGraph& graph, const Machine& machine);

// The same for all graphs of a pattern. Without `lane_of_work`, which is the graph's: lanes of collectives come first and are
// those of the pattern.
JobMap map_lanes(const RankGrid& grid, const TransferPattern& pattern, const Machine& machine,
                 GroupShapes& shapes, const RankBlocks& blocks = {});

}  // namespace herdsim

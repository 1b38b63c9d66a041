#include "sim/symmetry/folded_job.h"

#include <algorithm>
#include <tuple>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// Adds up how often the members of each class cross each representative link.
void fold_paths(const Lane& lane, const Partition& instances, const JobClasses& classes,
                FoldedLane& folded) {
  std::vector<std::tuple<uint32_t, uint32_t, int64_t>> terms;  // transfer class, link class, count
  for (size_t i = 0; i < lane.instances; ++i) {
    for (const LaneCrossing& crossing : lane.path(i)) {
      const uint32_t slot = classes.slot(crossing.link);
      const uint32_t link_class = classes.link_classes.class_of[slot];
      if (classes.link_classes.representative[link_class] != slot) continue;
      terms.emplace_back(instances.class_of[i], link_class, crossing.count);
    }
  }
  std::sort(terms.begin(), terms.end());
  size_t next = 0;
  for (uint32_t c = 0; c < folded.transfers.size(); ++c) {
    FoldedTransfer& transfer = folded.transfers[c];
    transfer.first_crossing = static_cast<uint32_t>(folded.crossings.size());
    for (; next < terms.size() && std::get<0>(terms[next]) == c; ++next) {
      const auto [_, link_class, count] = terms[next];
      if (folded.crossings.size() > transfer.first_crossing &&
          folded.crossings.back().link == LinkId(link_class)) {
        folded.crossings.back().count += count;
      } else {
        folded.crossings.push_back({LinkId(link_class), count});
      }
    }
    transfer.crossings = static_cast<uint32_t>(folded.crossings.size()) - transfer.first_crossing;
  }
}

FoldedLane fold_lane(const OpGraph& graph, const Lane& lane, const Partition& instances,
                     const JobClasses& classes) {
  FoldedLane folded;
  folded.is_message = lane.is_message;
  folded.communicator = lane.communicator;
  folded.instances = lane.instances;
  folded.spread = lane.spread;
  folded.own_links = lane.own_links;
  folded.shapes = lane.shapes;
  for (size_t c = 0; c < instances.classes(); ++c) {
    const uint32_t representative = instances.representative[c];
    FoldedTransfer transfer;
    transfer.shape = lane.shape_of[representative];
    transfer.instance = representative;
    transfer.instances = instances.size[c];
    transfer.own_bound = lane.own_bound[representative];
    transfer.first_member = static_cast<uint32_t>(folded.members.size());
    if (!lane.is_message) {
      std::vector<RankClassId> meeting;
      for (size_t i = 0; i < graph.grid.group_size(lane.communicator); ++i) {
        const RankId rank = graph.grid.member(CommGroupId(representative), lane.communicator, i);
        meeting.emplace_back(classes.ranks.class_of[rank.index()]);
      }
      std::sort(meeting.begin(), meeting.end());
      meeting.erase(std::unique(meeting.begin(), meeting.end()), meeting.end());
      folded.members.insert(folded.members.end(), meeting.begin(), meeting.end());
    }
    transfer.members = static_cast<uint32_t>(folded.members.size()) - transfer.first_member;
    folded.transfers.push_back(transfer);
  }
  for (const uint32_t representative : classes.ranks.representative) {
    const size_t instance =
        lane.is_message ? representative
                        : graph.grid.group_of(RankId(representative), lane.communicator).index();
    folded.transfer_of.push_back(instances.class_of[instance]);
  }
  fold_paths(lane, instances, classes, folded);
  return folded;
}

}  // namespace

FoldedJob fold(const OpGraph& graph, const Machine& machine, const JobMap& map,
               const JobClasses& classes) {
  FoldedJob job;
  for (size_t c = 0; c < classes.ranks.classes(); ++c) {
    const RankId representative(classes.ranks.representative[c]);
    job.ranks.push_back({representative, classes.ranks.size[c], graph.program_of(representative),
                         machine.compute_factor[representative]});
    std::vector<RankClassId> receivers;
    for (const ProgramId peer : map.peers[graph.program_of(representative)]) {
      const RankId rank = graph.grid.with(representative, Axis::kPp, peer.index());
      receivers.emplace_back(classes.ranks.class_of[rank.index()]);
    }
    job.receivers.push_back(std::move(receivers));
  }
  for (const uint32_t slot : classes.link_classes.representative) {
    const LinkId link = classes.links[slot];
    job.representative_link.push_back(link);
    job.capacity.push_back(machine.capacity[link]);
  }
  job.links_of_class.resize(classes.link_classes.classes());
  for (size_t slot = 0; slot < classes.links.size(); ++slot) {
    const Link& link = machine.fabric.links()[classes.links[slot]];
    FoldedJob::Directions& alike = job.links_of_class[classes.link_classes.class_of[slot]];
    ++(link.from < link.to ? alike.up : alike.down);
  }
  for (const CapacityChange& change : machine.changes) {
    if (!classes.is_crossed(change.link)) continue;
    const uint32_t slot = classes.slot(change.link);
    const uint32_t link_class = classes.link_classes.class_of[slot];
    if (classes.link_classes.representative[link_class] != slot) continue;
    job.changes.push_back({change.at, LinkId(link_class), change.capacity});
  }
  for (size_t l = 0; l < map.lanes.size(); ++l) {
    job.lanes.push_back(fold_lane(graph, map.lanes[l], classes.lanes[l], classes));
  }
  job.lane_of_work = map.lane_of_work;
  job.peers = map.peers;
  job.message_lane = map.message_lane;
  job.class_of_rank = classes.ranks.class_of;
  return job;
}

}  // namespace herdsim

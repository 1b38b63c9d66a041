#include "sim/symmetry/folded_job.h"

#include <algorithm>
#include <tuple>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// Adds up how often the members of each class cross each representative link.
void fold_paths(const Machine& machine, const JobMap& map, const Lane& lane,
                const Partition& instances, const JobClasses& classes, FoldedLane& folded) {
  std::vector<std::tuple<uint32_t, uint32_t, int64_t>> terms;  // transfer class, link class, count
  for (size_t i = 0; i < lane.listed(); ++i) {
    for (const LaneCrossing& crossing : lane.path(i)) {
      const uint32_t slot = classes.slot(crossing.link);
      const uint32_t link_class = classes.link_classes.class_of[slot];
      if (classes.link_classes.representative[link_class] != slot) continue;
      const LinkKind kind = machine.fabric.links()[crossing.link].kind;
      const auto times = static_cast<int64_t>(lane.crossed_by(map.blocks.links_of(kind)));
      terms.emplace_back(instances.class_of[i], link_class, crossing.count * times);
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

// The classes that meet in a group, ascending.
std::vector<RankClassId> classes_in(const OpGraph& graph, const JobMap& map,
                                    const JobClasses& classes, CommGroupId group,
                                    Communicator communicator) {
  std::vector<RankId> ranks;
  graph.grid.list_members(group, communicator, ranks);
  std::vector<RankClassId> meeting;
  for (const RankId rank : ranks) {
    const RankClassId of_rank(classes.ranks.class_of[rank.index() / map.blocks.ranks]);
    if (meeting.empty() || meeting.back() != of_rank) meeting.push_back(of_rank);
  }
  std::sort(meeting.begin(), meeting.end());
  meeting.erase(std::unique(meeting.begin(), meeting.end()), meeting.end());
  return meeting;
}

FoldedLane fold_lane(const OpGraph& graph, const Machine& machine, const JobMap& map,
                     const JobClasses& classes, size_t l) {
  const Lane& lane = map.lanes[l];
  const Partition& instances = classes.lanes[l];
  FoldedLane folded;
  folded.is_message = lane.is_message;
  folded.communicator = lane.communicator;
  folded.instances = lane.instances;
  folded.spread = lane.spread;
  folded.own_links = lane.own_links;
  folded.shapes = lane.shapes;
  for (size_t c = 0; c < instances.classes(); ++c) {
    const uint32_t listed = instances.representative[c];
    FoldedTransfer transfer;
    transfer.shape = lane.shape_of[listed];
    transfer.instance = static_cast<uint32_t>(listed * lane.alike);
    transfer.instances = instances.size[c];
    transfer.own_bound = lane.own_bound[listed];
    transfer.first_member = static_cast<uint32_t>(folded.members.size());
    if (!lane.is_message) {
      const std::vector<RankClassId> meeting =
          classes_in(graph, map, classes, CommGroupId(transfer.instance), lane.communicator);
      folded.members.insert(folded.members.end(), meeting.begin(), meeting.end());
    }
    transfer.members = static_cast<uint32_t>(folded.members.size()) - transfer.first_member;
    folded.transfers.push_back(transfer);
  }
  for (const uint32_t listed : classes.ranks.representative) {
    const RankId rank(listed * map.blocks.ranks);
    const size_t instance =
        lane.is_message ? rank.index() : graph.grid.group_of(rank, lane.communicator).index();
    folded.transfer_of.push_back(instances.class_of[instance / lane.alike]);
  }
  fold_paths(machine, map, lane, instances, classes, folded);
  return folded;
}

}  // namespace

FoldedJob fold(const OpGraph& graph, const Machine& machine, const JobMap& map,
               const JobClasses& classes) {
  FoldedJob job;
  const size_t block = map.blocks.ranks;
  for (size_t c = 0; c < classes.ranks.classes(); ++c) {
    const RankId representative(classes.ranks.representative[c] * block);
    job.ranks.push_back({representative, classes.ranks.size[c], graph.program_of(representative),
                         machine.compute_factor[representative]});
    std::vector<RankClassId> receivers;
    for (const ProgramId peer : map.peers[graph.program_of(representative)]) {
      const RankId rank = graph.grid.with(representative, Axis::kPp, peer.index());
      receivers.emplace_back(classes.ranks.class_of[rank.index() / block]);
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
    (link.from < link.to ? alike.up : alike.down) +=
        static_cast<int64_t>(map.blocks.links_of(link.kind));
  }
  for (const CapacityChange& change : machine.changes) {
    if (!classes.is_crossed(change.link)) continue;
    const uint32_t slot = classes.slot(change.link);
    const uint32_t link_class = classes.link_classes.class_of[slot];
    if (classes.link_classes.representative[link_class] != slot) continue;
    job.changes.push_back({change.at, LinkId(link_class), change.capacity});
  }
  for (size_t l = 0; l < map.lanes.size(); ++l) {
    job.lanes.push_back(fold_lane(graph, machine, map, classes, l));
  }
  job.lane_of_work = map.lane_of_work;
  job.peers = map.peers;
  job.message_lane = map.message_lane;
  job.class_of_rank.reserve(graph.grid.ranks());
  for (const uint32_t of_block : classes.ranks.class_of) {
    job.class_of_rank.insert(job.class_of_rank.end(), block, of_block);
  }
  return job;
}

}  // namespace herdsim

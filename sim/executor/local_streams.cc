#include "sim/executor/local_streams.h"

#include <algorithm>
#include <array>
#include <utility>

namespace herdsim {
namespace {

// What a stream's transfers load each of their links with at most, in bytes per second.
struct LinkLoad {
  uint32_t link;
  Int128 most;
};
using LinkLoads = std::vector<LinkLoad>;

void raise(LinkLoads& loads, uint32_t link, Int128 load) {
  for (LinkLoad& known : loads) {
    if (known.link != link) continue;
    known.most = std::max(known.most, load);
    return;
  }
  loads.push_back({link, load});
}

class StreamFinder {
 public:
  StreamFinder(const OpGraph& graph, const FoldedJob& job, const FluidNetwork& network,
               SharedLinks shared)
      : job_(job), network_(network), shared_(shared), may_change_(job.capacity.size(), 0) {
    for (const CapacityChange& change : job.changes) may_change_[change.link] = 1;
    for (size_t w = 0; w < graph.works.size(); ++w) {
      const Work& work = graph.works[WorkId(w)];
      const auto stream = static_cast<size_t>(work.stream);
      if (work.kind == WorkKind::kCompute || stream >= kLocalStreams) continue;
      if (work.kind != WorkKind::kCollective) {
        others_work_on_ |= 1U << stream;
        continue;
      }
      std::vector<uint32_t>& lanes = lanes_[stream];
      const uint32_t lane = job.lane_of_work[WorkId(w)];
      if (std::find(lanes.begin(), lanes.end(), lane) == lanes.end()) lanes.push_back(lane);
    }
  }

  TypedVector<RankClassId, uint32_t> find() {
    TypedVector<RankClassId, uint32_t> bits(job_.ranks.size(), 0);
    taken_.assign(job_.capacity.size(), 0);
    users_.resize(job_.capacity.size());
    for (size_t r = 0; r < job_.ranks.size(); ++r) {
      for (size_t stream = 0; stream < kLocalStreams; ++stream) {
        if (takes(RankClassId(r), stream)) bits[RankClassId(r)] |= 1U << stream;
      }
    }
    return bits;
  }

  std::vector<std::vector<std::vector<RankClassId>>> meetings() const {
    std::vector<std::vector<std::vector<RankClassId>>> met;
    for (const FoldedLane& lane : job_.lanes) {
      met.emplace_back(lane.transfers.size());
      for (size_t t = 0; t < lane.transfers.size(); ++t) {
        std::vector<RankClassId>& by = met.back()[t];
        for (const Crossing& crossing : lane.path(lane.transfers[t])) {
          const std::vector<RankClassId>& users = users_[crossing.link];
          by.insert(by.end(), users.begin(), users.end());
        }
        std::sort(by.begin(), by.end());
        by.erase(std::unique(by.begin(), by.end()), by.end());
      }
    }
    return met;
  }

 private:
  // Whether the stream is local, beside those that have been found; then its links are taken.
  bool takes(RankClassId rank, size_t stream) {
    if ((others_work_on_ >> stream & 1) != 0) return false;
    LinkLoads loads;
    for (const uint32_t l : lanes_[stream]) {
      const FoldedLane& lane = job_.lanes[l];
      const FoldedTransfer& transfer = lane.transfers[lane.transfer_of[rank.index()]];
      if (transfer.members != 1) return false;
      if (transfer.crossings == 0) continue;
      if (shared_ == SharedLinks::kNeverLocal) return false;
      const Bandwidth most = network_.rate_alone(lane.path(transfer), transfer.own_bound);
      if (most == Bandwidth()) return false;
      for (const Crossing& crossing : lane.path(transfer)) {
        if (may_change_[crossing.link] != 0) return false;
        // The rate of a link that is shared out may have had a part of a byte more.
        const int64_t rate = most.bytes_per_second() + (most == transfer.own_bound ? 0 : 1);
        const Int128 load = std::min<Int128>(Int128{rate} * crossing.count,
                                             job_.capacity[crossing.link].bytes_per_second());
        raise(loads, static_cast<uint32_t>(crossing.link.index()), load);
      }
    }
    for (const LinkLoad& load : loads) {
      const LinkId link(load.link);
      if (taken_[link] + load.most > job_.capacity[link].bytes_per_second()) return false;
    }
    for (const LinkLoad& load : loads) {
      const LinkId link(load.link);
      taken_[link] += load.most;
      if (users_[link].empty() || users_[link].back() != rank) users_[link].push_back(rank);
    }
    return true;
  }

  const FoldedJob& job_;
  const FluidNetwork& network_;
  const SharedLinks shared_;
  TypedVector<LinkId, uint8_t> may_change_;
  std::array<std::vector<uint32_t>, kLocalStreams> lanes_;  // of transfers, by stream
  uint32_t others_work_on_ = 0;  // bits of streams with work that is neither kernel nor collective
  TypedVector<LinkId, Int128> taken_;
  TypedVector<LinkId, std::vector<RankClassId>> users_;
};

}  // namespace

LocalStreams::LocalStreams(const OpGraph& graph, const FoldedJob& job, const FluidNetwork& network,
                           SharedLinks shared) {
  StreamFinder finder(graph, job, network, shared);
  bits_ = finder.find();
  if (shared == SharedLinks::kMayBeLocal) met_ = finder.meetings();
}

}  // namespace herdsim

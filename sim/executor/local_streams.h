// Which streams of which ranks are local: nobody else takes part in what runs on them, and nobody
// else decides how long that takes.
//
// Transfers among ranks that do the same are such, over links that nobody else uses. Over links
// that others may use they are as long as nobody does; whoever is about to start a transfer there
// asks who has to give way (run_ahead.cc). Local transfers never have to give way to each other: a
// stream is local only if its links can carry all local ones at once, each at its own bound.
//
//   const LocalStreams streams(graph, job, network, SharedLinks::kMayBeLocal);
//   if (streams.is_local(rank, stream)) ...
//   for (RankClassId rank : streams.met_by(lane, transfer)) ...
#pragma once

#include <cstdint>
#include <vector>

#include "sim/executor/local_order.h"
#include "sim/network/fluid_network.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

// Of links that are in the network. kNeverLocal: somebody uses them who does not ask.
enum class SharedLinks : uint8_t { kNeverLocal, kMayBeLocal };

class LocalStreams {
 public:
  LocalStreams() = default;  // none
  // Requires: the network has the job's links. Complexity: that of the job's crossings, each times
  // the ranks that have local transfers on its link.
  LocalStreams(const OpGraph& graph, const FoldedJob& job, const FluidNetwork& network,
               SharedLinks shared);

  // Bits, by stream.
  uint32_t of(RankClassId rank) const { return bits_[rank]; }
  bool is_local(RankClassId rank, size_t stream) const {
    return stream < kLocalStreams && (bits_[rank] >> stream & 1) != 0;
  }
  // Who has local transfers on a link of this one, which is not local itself.
  const std::vector<RankClassId>& met_by(uint32_t lane, uint32_t transfer) const {
    return met_.empty() ? nobody_ : met_[lane][transfer];
  }

 private:
  TypedVector<RankClassId, uint32_t> bits_;
  std::vector<std::vector<std::vector<RankClassId>>> met_;  // by lane and transfer; or empty
  std::vector<RankClassId> nobody_;
};

}  // namespace herdsim

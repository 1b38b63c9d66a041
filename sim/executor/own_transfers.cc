// A rank's own transfers over links that others may use.
//
// As long as nobody does, such a transfer goes at a rate that is known before, and is local like a
// kernel: the network does not see it. Before anybody starts a transfer on one of its links, the
// rank gives way: it catches up, and what is left of its transfer goes on in the network, where
// they share the link from this instant on. While others are there, its next ones start in the
// network too. What it has left is what the network would have computed, so all of it is the same
// to the bit as if each had been in the network.
#include "sim/base/check.h"
#include "sim/executor/step_run.h"

namespace herdsim {

// Before others use links of the rank's own transfers.
void StepRun::give_way(RankClassId rank) {
  catch_up(rank);
  for (uint32_t left = local_[rank].running & ~(1U << kCompute); left != 0; left &= left - 1) {
    enter_network(rank, static_cast<size_t>(std::countr_zero(left)));
  }
}

// What is left of the rank's transfer, unless it is only the latency.
void StepRun::enter_network(RankClassId rank, size_t stream) {
  LocalRun& local = local_[rank];
  const FoldedLane& lane = job_.lanes[local.lane[stream]];
  const FoldedTransfer& transfer = own_transfer(rank, local.lane[stream]);
  if (transfer.crossings == 0) return;
  const TransferState& state = transfers_[local.lane[stream]][lane.transfer_of[rank.index()]];
  const CollectivePlan& plan = plans_[state.work.index()][transfer.shape];
  HERDSIM_CHECK(now_ == engine_.now()) << "a transfer meets others in the past";
  if (plan.volume == Bytes(0) || local.ends[stream] <= now_ + plan.latency) return;
  local.running &= ~(1U << stream);
  local.in_network |= 1U << stream;
  local.watched = nullptr;
  network_.start_under_way(plan.volume, lane.path(transfer),
                           std::min(plan.rate_cap, transfer.own_bound), now_ - state.started,
                           [this, rank, stream, latency = plan.latency] {
                             engine_.after(latency, [this, rank, stream] {
                               begin_event();
                               leave_network(rank, stream);
                               end_event();
                             });
                           });
}

void StepRun::leave_network(RankClassId rank, size_t stream) {
  catch_up(rank);
  LocalRun& local = local_[rank];
  local.in_network &= ~(1U << stream);
  const uint32_t lane = local.lane[stream];
  const FoldedTransfer& transfer = own_transfer(rank, lane);
  const WorkId work = programs_.work(rank, programs_.next(rank, stream));
  for (const Crossing& crossing : job_.lanes[lane].path(transfer)) {
    lone_bytes_[crossing.link] -= plans_[work.index()][transfer.shape].volume * crossing.count;
  }
  end_local(rank, stream);
}

// What the network did not see, by what ran.
void StepRun::add_lone_bytes() {
  for (size_t l = 0; l < job_.lanes.size(); ++l) {
    const FoldedLane& lane = job_.lanes[l];
    if (lane.is_message) continue;
    for (size_t t = 0; t < lane.transfers.size(); ++t) {
      const FoldedTransfer& transfer = lane.transfers[t];
      if (transfer.members != 1 || transfer.crossings == 0) continue;
      const RankClassId rank = lane.members_of(transfer).front();
      for (const auto& [work, runs] : runs_[l][t]) {
        if (!is_local(rank, static_cast<size_t>(programs_.facts(work).stream))) continue;
        const Bytes volume = plans_[work.index()][transfer.shape].volume * runs;
        for (const Crossing& crossing : lane.path(transfer))
          lone_bytes_[crossing.link] += volume * crossing.count;
      }
    }
  }
}

}  // namespace herdsim

// What a step that has ended, or cannot, took.
#include <string>
#include <utility>

#include "sim/executor/step_run.h"

namespace herdsim {

StepOutcome StepRun::outcome() {
  outcome_.makespan = last_end_ - begin_;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    // A rank that is done early waits for the others to end the step.
    book_tail(RankClassId(r));
    collect_blocked(RankClassId(r));
  }
  outcome_.events = engine_.events_run();
  outcome_.is_cut_off = !network_.stalled().empty();
  list_runs();
  if (runs_ahead_) add_lone_bytes();
  for (size_t l = 0; l < job_.capacity.size(); ++l) {
    outcome_.link_bytes.push_back(network_.carried(LinkId(l)) +
                                  (runs_ahead_ ? lone_bytes_[LinkId(l)] : Bytes()));
  }
  return std::move(outcome_);
}

void StepRun::book_tail(RankClassId rank) {
  const RankState& state = ranks_[rank];
  add(rank, state.term, outcome_.makespan - (state.since - begin_));
}

void StepRun::list_runs() {
  for (size_t lane = 0; lane < runs_.size(); ++lane) {
    for (size_t t = 0; t < runs_[lane].size(); ++t) {
      for (const auto& [work, runs] : runs_[lane][t]) {
        outcome_.transfers.push_back(
            {static_cast<uint32_t>(lane), static_cast<uint32_t>(t), work, runs});
      }
    }
  }
}

void StepRun::collect_blocked(RankClassId rank) {
  constexpr size_t kEnough = 8;
  for (size_t stream = 0; stream < kStreams; ++stream) {
    if (!programs_.is_open(rank, stream) || outcome_.deadlock.size() >= kEnough) continue;
    const OpId* missing = programs_.first_missing(rank, stream);
    const Op& blocked = programs_.op(rank, programs_.next(rank, stream));
    std::string why = "other members of its group";
    if (missing != nullptr) {
      const Op& before = programs_.op(rank, *missing);
      why = graph_.works[before.work].name + " of micro-batch " +
            std::to_string(before.micro_batch) + ", chunk " + std::to_string(before.chunk);
    }
    outcome_.deadlock.push_back({job_.ranks[rank].representative, graph_.works[blocked.work].name,
                                 blocked.micro_batch, blocked.chunk, std::move(why)});
  }
}

}  // namespace herdsim

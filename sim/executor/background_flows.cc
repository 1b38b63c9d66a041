#include "sim/executor/background_flows.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {

class BackgroundFlows::Run {
 public:
  Run(Engine& engine, FluidNetwork& network, const BackgroundFlow& flow)
      : engine_(engine),
        network_(network),
        flow_(flow),
        lane_(flow.job.lanes.front()),
        moves_(lane_.transfers.size()) {
    HERDSIM_CHECK(flow.job.lanes.size() == 1) << flow.job.lanes.size() << " lanes of a flow";
    outcome_.moved.resize(moves_.size());
    left_ = moves_.size();
    if (flow.keeps_rates) engine_.on_settle([this] { note_rates(); });
  }

  void begin() {
    engine_.after(flow_.begins, [this] {
      for (size_t t = 0; t < moves_.size(); ++t) start(t);
    });
  }
  void end_step(size_t job) {
    if (job != flow_.of_job) return;
    for (size_t t = 0; t < moves_.size(); ++t) {
      const Move& move = moves_[t];
      if (move.started) outcome_.moved[t] = move.volume - left(move);
    }
  }
  BackgroundOutcome outcome() {
    outcome_.is_stalled = left_ > 0;
    return std::move(outcome_);
  }

 private:
  struct Move {
    bool started = false, is_done = false;
    TransferId id;  // none where it crosses nothing that could be full
    Bytes volume;
    Bandwidth cap, noted;
  };

  void start(size_t t) {
    const FoldedTransfer& transfer = lane_.transfers[t];
    const CollectivePlan& plan = flow_.plans[transfer.shape];
    Move& move = moves_[t];
    move.started = true;
    move.volume = plan.volume;
    move.cap = std::min(plan.rate_cap, transfer.own_bound);
    if (transfer.crossings == 0) {
      engine_.after(move.volume / move.cap, [this, t] { end(t); });
      return;
    }
    move.id = network_.start(move.volume, lane_.path(transfer), move.cap, [this, t] { end(t); });
  }
  void end(size_t t) {
    moves_[t].is_done = true;
    outcome_.took = engine_.now() - Instant::start() - flow_.begins;
    --left_;
  }
  Bytes left(const Move& move) const {
    if (move.is_done) return Bytes();
    if (move.id != TransferId()) return network_.left(move.id);
    const Duration since = engine_.now() - Instant::start() - flow_.begins;
    const auto passed = static_cast<double>(move.cap.bytes_per_second()) * since.seconds();
    return std::max(Bytes(), move.volume - Bytes(static_cast<int64_t>(passed)));
  }
  void note_rates() {
    std::vector<RateChange>& rates = outcome_.rates;
    for (size_t t = 0; t < moves_.size(); ++t) {
      Move& move = moves_[t];
      const Bandwidth rate = network_.rate(move.id);
      if (rate == move.noted) continue;
      move.noted = rate;
      rates.push_back({engine_.now(), static_cast<uint32_t>(t), rate});
    }
  }

  Engine& engine_;
  FluidNetwork& network_;
  const BackgroundFlow& flow_;
  const FoldedLane& lane_;
  std::vector<Move> moves_;  // by transfer
  size_t left_ = 0;          // transfers that have not ended
  BackgroundOutcome outcome_;
};

BackgroundFlows::BackgroundFlows(Engine& engine, FluidNetwork& network,
                                 const std::vector<BackgroundFlow>& flows) {
  for (const BackgroundFlow& flow : flows)
    runs_.push_back(std::make_unique<Run>(engine, network, flow));
}
BackgroundFlows::~BackgroundFlows() = default;

void BackgroundFlows::begin() {
  for (const auto& run : runs_) run->begin();
}
void BackgroundFlows::end_step(size_t job) {
  for (const auto& run : runs_) run->end_step(job);
}
std::vector<BackgroundOutcome> BackgroundFlows::outcomes() {
  std::vector<BackgroundOutcome> all;
  for (const auto& run : runs_) all.push_back(run->outcome());
  return all;
}

}  // namespace herdsim

#include "sim/executor/step_executor.h"

#include <memory>
#include <optional>

#include "sim/base/check.h"
#include "sim/executor/step_run.h"

namespace herdsim {
namespace {

// Jobs side by side.
class SharedSteps {
 public:
  SharedSteps(const std::vector<SharingJob>& jobs, const BesideSteps& beside)
      : jobs_(jobs),
        network_(engine_, jobs.front().job.capacity.values(), LinkAccounting::kOn),
        left_(jobs.size()) {
    for (const Burst& burst : beside.bursts) {
      bursts_.push_back(std::make_unique<BurstLink>(engine_, network_, burst.link, burst.rates));
    }
    flows_ = std::make_unique<BackgroundFlows>(engine_, network_, beside.flows);
    for (const SharingJob& j : jobs) {
      steps_.push_back(std::make_unique<StepRun>(engine_, network_, j.graph, j.costs, j.job,
                                                 j.tuning, j.sms,
                                                 ExecutionChoice{.traced = j.traced, .op_by_op = j.op_by_op},
                                                 SharedLinks::kNeverLocal));
    }
    outcomes_.resize(jobs.size());
  }

  SharedOutcome run() {
    // The changes of a link that jobs share are in the list of each.
    for (const CapacityChange& change : jobs_.front().job.changes) {
      engine_.after(change.at,
                    [this, to = &change] { network_.set_capacity(to->link, to->capacity); });
    }
    for (size_t j = 0; j < jobs_.size(); ++j)
      engine_.after(jobs_[j].begins, [this, j] { begin(j); });
    flows_->begin();
    engine_.run();
    for (size_t j = 0; j < jobs_.size(); ++j) {
      if (!outcomes_[j]) outcomes_[j] = steps_[j]->outcome();
    }
    SharedOutcome all{.steps = {}, .flows = flows_->outcomes()};
    for (std::optional<StepOutcome>& outcome : outcomes_) all.steps.push_back(std::move(*outcome));
    return all;
  }

 private:
  void begin(size_t j) {
    steps_[j]->when_done([this, j] { end(j); });
    steps_[j]->begin();
  }
  void end(size_t j) {
    if (!outcomes_[j]) {
      outcomes_[j] = steps_[j]->outcome();
      flows_->end_step(j);
      --left_;
    }
    if (left_ == 0) return;
    steps_[j]->rewind();
    begin(j);
  }

  const std::vector<SharingJob>& jobs_;
  Engine engine_;
  FluidNetwork network_;
  std::vector<std::unique_ptr<StepRun>> steps_;
  std::vector<std::optional<StepOutcome>> outcomes_;
  std::vector<std::unique_ptr<BurstLink>> bursts_;
  std::unique_ptr<BackgroundFlows> flows_;
  size_t left_;  // jobs whose first step has not ended
};

}  // namespace

StepOutcome execute_step(const OpGraph& graph, const CostedGraph& costs, const FoldedJob& job,
                         const NcclTuning& tuning, const Multiprocessors& sms, const ExecutionChoice& choice) {
  Engine engine;
  FluidNetwork network(engine, job.capacity.values(), LinkAccounting::kOn);
  StepRun step(engine, network, graph, costs, job, tuning, sms, choice, SharedLinks::kMayBeLocal);
  for (const CapacityChange& change : job.changes) {
    engine.after(change.at,
                 [&network, to = &change] { network.set_capacity(to->link, to->capacity); });
  }
  step.begin();
  engine.run();
  return step.outcome();
}

SharedOutcome execute_steps(const std::vector<SharingJob>& jobs, const BesideSteps& beside) {
  HERDSIM_CHECK(!jobs.empty()) << "no jobs";
  return SharedSteps(jobs, beside).run();
}

}  // namespace herdsim

// Flows beside the steps of jobs that no op waits for: saves and reads of data. Each transfer of a
// lane moves its volume once, through the same network as the steps' transfers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/collectives/collective.h"
#include "sim/engine/engine.h"
#include "sim/network/fluid_network.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

struct BackgroundFlow {
  const FoldedJob& job;               // of fold_together(), with one lane
  std::vector<CollectivePlan> plans;  // by shape of the lane; their latency counts for nothing
  Duration begins;                    // after the run's begin
  size_t of_job = 0;                  // index of the job whose step it is beside
  bool keeps_rates = false;
};

// From `at` on, of one of the instances that a transfer stands for.
struct RateChange {
  Instant at;
  uint32_t transfer = 0;
  Bandwidth rate;
};

struct BackgroundOutcome {
  Duration took;            // to the last byte
  bool is_stalled = false;  // something never arrives; then `took` means nothing
  // By transfer, of one instance: what had moved when the first step of its job ended.
  std::vector<Bytes> moved;
  std::vector<RateChange> rates;  // by time, where they were asked for
};

// Flows of one run.
class BackgroundFlows {
 public:
  // All must outlive this object, and this object the events of the engine. Requires: the network
  // was made on this engine.
  BackgroundFlows(Engine& engine, FluidNetwork& network, const std::vector<BackgroundFlow>& flows);
  BackgroundFlows(const BackgroundFlows&) = delete;  // events hold references to it
  BackgroundFlows& operator=(const BackgroundFlows&) = delete;
  ~BackgroundFlows();

  // Schedules all of them. Requires: the engine has not run.
  void begin();
  // The job's first step ends now.
  void end_step(size_t job);
  // By flow. Requires: the engine has nothing left to run.
  std::vector<BackgroundOutcome> outcomes();

 private:
  class Run;
  std::vector<std::unique_ptr<Run>> runs_;
};

}  // namespace herdsim

// Machines that several scenarios run on, each built once, with the jobs folded on them.
//
//   MachineMemo machines;
//   for (const Scenario& scenario : plans) simulate_step(scenario, {}, machines);
//
// Scenarios share a machine where their cluster, its degraded parts, other traffic, job size and
// seed are equal.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/symmetry/folded_jobs.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/job_on_machine.h"

namespace herdsim {

class MachineMemo {
 public:
  struct Known {
    MachineState state;
    FoldedJobs jobs;
  };
  // May be called by several threads; who asks first builds it. Requires: nothing else on the
  // machine: no other jobs, no saves or reads of data beside the step.
  std::shared_ptr<Known> of(const Scenario& scenario);

 private:
  // The least recently used is forgotten first. Few, since a machine of 16,384 GPUs takes some ten
  // megabytes, and fresh memory costs more than most sweeps would save: one that all points stand
  // on, and the one of a point.
  static constexpr size_t kMostMachines = 2;
  static constexpr int64_t kMostGpus = int64_t{1} << 20;  // of all but the newest

  struct Entry {
    ClusterSpec cluster;
    OtherTraffic other_traffic;
    int64_t gpus = 0, ranks_per_replica = 0;
    uint64_t seed = 0;
    std::once_flag built;
    std::shared_ptr<Known> machine;
  };

  std::shared_ptr<Entry> entry_of(const Scenario& scenario);
  void forget_least_used();

  std::mutex mutex_;                             // of the list
  std::vector<std::shared_ptr<Entry>> entries_;  // by their last use
};

}  // namespace herdsim

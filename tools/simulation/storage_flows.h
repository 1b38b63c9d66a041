// What goes between a job's GPUs and its store while it trains, as flows on the machine's network.
//
// Every GPU moves its equal part of a save, or of the next batch, over its own way to the disks
// (sim/fabric/storage_part.h). Rates are bounded by what the job's pipeline and a host's client
// reach (checkpoint.storage) and shared with whatever else crosses the links; the disks carry what
// they sustain, or their peak for as long as full credit lasts at it.
//
// For the simulation a flow is one more job, with one op a rank, that runs beside the job's step
// and that nobody waits for.
#pragma once

#include <memory>
#include <vector>

#include "sim/executor/step_executor.h"
#include "sim/symmetry/shared_fabric.h"
#include "tools/simulation/job_on_machine.h"

namespace herdsim {

// Members refer to each other and to the arguments, which must outlive this object.
class StorageJob {
 public:
  // `bytes` of the whole job.
  StorageJob(const JobOnMachine& job, StoreAccess access, Bytes bytes, Duration begins);
  StorageJob(const StorageJob&) = delete;
  StorageJob& operator=(const StorageJob&) = delete;

  MappedJob mapped() const { return {graph, machine, map}; }
  SharingJob sharing(const FoldedJob& folded) const;

  const StoreAccess access;
  const Bytes bytes;
  const Duration begins;
  const OpGraph graph;
  const CostedGraph costs;
  const Machine machine;
  const JobMap map;
  const Multiprocessors sms;
};

// What the scenario's other_traffic says that flows beside a step of that time without it.
std::vector<std::unique_ptr<StorageJob>> storage_jobs(const JobOnMachine& job, Duration step);

// Gives the disks their rates, in crossings of kDiskCrossings. Requires: the fabric has storage.
void set_disk_rates(const Scenario& scenario, MachineState& state);

}  // namespace herdsim

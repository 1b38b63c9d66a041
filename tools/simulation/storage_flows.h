// What goes between a job's GPUs and its store while it trains, as flows on the machine's network.
//
// Every GPU moves its equal part of a save, or of the next batch, over its own way to the disks
// (sim/fabric/storage_part.h). Rates are bounded by what the job's pipeline and a host's client
// reach (checkpoint.storage) and shared with whatever else crosses the links. The disks are a token
// bucket, full when the step begins: their peak while there is credit, what they sustain otherwise
// (sim/network/burst_link.h).
//
// For folding, a flow is one more job of one op a rank beside the job's step; it runs as a
// background flow (sim/executor/background_flows.h), which nobody waits for.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/executor/step_executor.h"
#include "sim/symmetry/shared_fabric.h"
#include "tools/simulation/job_on_machine.h"

namespace herdsim {

// Members refer to each other and to the arguments, which must outlive this object.
class StorageJob {
 public:
  // `bytes` of the whole job, `begins` after the first job's step, `of_job`: its index on the
  // machine.
  StorageJob(const JobOnMachine& job, size_t of_job, StoreAccess access, Bytes bytes,
             Duration begins);
  StorageJob(const StorageJob&) = delete;
  StorageJob& operator=(const StorageJob&) = delete;

  MappedJob mapped() const { return {graph, machine, map}; }
  BackgroundFlow flow(const FoldedJob& folded, bool keeps_rates) const;

  const size_t of_job;
  const StoreAccess access;
  const Bytes bytes;
  const Duration begins;
  const OpGraph graph;
  const CostedGraph costs;
  const Machine machine;
  const JobMap map;
};

// Whether this job or another one of the machine has such flows.
bool has_storage_flows(const Scenario& scenario);
// The same scenario without any.
Scenario without_storage_flows(Scenario scenario);

// What the job's other_traffic says that flows beside its step, which takes that long without and
// begins that long after the first job's.
std::vector<std::unique_ptr<StorageJob>> storage_jobs(const JobOnMachine& job, size_t of_job,
                                                      Duration begins, Duration step);

// Gives the disks the capacity they begin with, in crossings of kDiskCrossings. Requires: the
// fabric has storage.
void set_disk_rates(const Scenario& scenario, MachineState& state);
// Where the disks have a peak: their link class of the folded jobs, if any of them crosses it.
std::optional<Burst> disk_burst(const Scenario& scenario, const Fabric& fabric,
                                const FoldedJob& folded);

}  // namespace herdsim

// A scenario taken apart into what the executor runs: the machine as it is, and a job's work and
// costs on it.
//
//   const MachineState machine = machine_of(scenario);
//   const JobOnMachine job(scenario, machine, 0);
//   const JobMap map = map_job(job.graph, job.machine);
//   const FoldedJob folded = fold(job.graph, job.machine, map, classify(job.graph, job.machine, map));
#pragma once

#include <vector>

#include "sim/collectives/nccl_tuning.h"
#include "sim/costing/cost_pass.h"
#include "sim/executor/step_executor.h"
#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/machine.h"
#include "tools/scenario/scenario.h"
#include "topologies/link_capacity.h"
#include "workloads/stage_layout.h"

namespace herdsim {

// The GPU of each rank of the scenario's job.
TypedVector<RankId, GpuId> placement_of(const Scenario& scenario);

// The fabric with what its links carry, and where each job lies: the scenario's own, then the
// others.
struct MachineState {
  Fabric fabric;
  LinkConditions links;
  std::vector<TypedVector<RankId, GpuId>> placements;
  bool storage_shares_hosts = false;  // flows to and from the store cross the GPUs' own links
};
// Requires: the scenario is loaded, so that no two jobs share a host.
MachineState machine_of(const Scenario& scenario);

// Members refer to each other and to the arguments, which must outlive this object.
class JobOnMachine {
 public:
  // `index` of the job in the machine's placements.
  JobOnMachine(const Scenario& of, const MachineState& state, size_t index);
  JobOnMachine(const JobOnMachine&) = delete;
  JobOnMachine& operator=(const JobOnMachine&) = delete;

  const Scenario& scenario;
  const TypedVector<RankId, GpuId>& placement;
  const ScheduleRow& schedule;
  const std::vector<StageLayout> layouts;
  OpGraph graph;
  CostedGraph costs;
  const TypedVector<RankId, double> factors;  // of the GPUs' speed
  const NcclTuning tuning;
  const Multiprocessors sms;
  const Machine machine;
};

}  // namespace herdsim

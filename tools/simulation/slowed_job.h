// One job whose GPUs compute slower, again and again: the machine, the work, its costs and the
// paths of its transfers are made once; only which ranks are alike, and the step, are found anew.
//
//   const SlowedJob job(scenario);
//   job.step_time({{.gpu = 37, .compute_permille = 900}});   // as simulate_step() with that GPU
//   degraded
//
// At 16,384 GPUs a step takes two thirds of the time that simulate_step() does; on a part of a
// machine of a million, a fifth.
#pragma once

#include <span>

#include "sim/base/time.h"
#include "sim/job/condition.h"
#include "sim/symmetry/job_map.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/job_on_machine.h"

namespace herdsim {

class SlowedJob {
 public:
  // Whether nothing else is on the scenario's machine.
  static bool is_possible(const Scenario& scenario);
  // Requires: is_possible(). Throws: SpecError where its work takes too long.
  explicit SlowedJob(const Scenario& scenario);
  SlowedJob(const SlowedJob&) = delete;  // members refer to each other
  SlowedJob& operator=(const SlowedJob&) = delete;

  // May be called by several threads. Requires: NICs of the parts are sound.
  Duration step_time(std::span<const SlowPart> slow) const;

 private:
  const Scenario scenario_;
  const MachineState state_;
  const JobOnMachine job_;
  const JobMap map_;
};

}  // namespace herdsim

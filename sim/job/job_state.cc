#include "sim/job/job_state.h"

#include "sim/base/check.h"

namespace herdsim {
namespace {

using S = JobState;
using E = JobEvent;

constexpr std::array kTransitions = {
    Transition{S::kRunning, E::kFailure, S::kDetecting},
    Transition{S::kRunning, E::kPlannedStop, S::kMaintenance},
    Transition{S::kRunning, E::kRegroup, S::kInitialising},
    Transition{S::kReplaying, E::kFailure, S::kDetecting},
    Transition{S::kReplaying, E::kPlannedStop, S::kMaintenance},
    Transition{S::kReplaying, E::kCaughtUp, S::kRunning},
    Transition{S::kReplaying, E::kRegroup, S::kInitialising},

    // The way back up. A failure on it starts it over.
    Transition{S::kDetecting, E::kFailure, S::kDetecting},
    Transition{S::kDetecting, E::kPhaseDone, S::kDiagnosing},
    Transition{S::kDiagnosing, E::kFailure, S::kDetecting},
    Transition{S::kDiagnosing, E::kPhaseDone, S::kRescheduling},
    Transition{S::kDiagnosing, E::kRegroup, S::kInitialising},
    Transition{S::kRescheduling, E::kFailure, S::kDetecting},
    Transition{S::kRescheduling, E::kPhaseDone, S::kStarting},
    Transition{S::kRescheduling, E::kHostsMissing, S::kWaitingForSpares},
    Transition{S::kWaitingForSpares, E::kFailure, S::kDetecting},
    Transition{S::kWaitingForSpares, E::kHostsFound, S::kStarting},
    Transition{S::kMaintenance, E::kFailure, S::kDetecting},
    Transition{S::kMaintenance, E::kPhaseDone, S::kStarting},
    Transition{S::kMaintenance, E::kHostsMissing, S::kWaitingForSpares},
    Transition{S::kStarting, E::kFailure, S::kDetecting},
    Transition{S::kStarting, E::kPhaseDone, S::kInitialising},
    Transition{S::kInitialising, E::kFailure, S::kDetecting},
    Transition{S::kInitialising, E::kPhaseDone, S::kLoading},
    Transition{S::kLoading, E::kFailure, S::kDetecting},
    Transition{S::kLoading, E::kPhaseDone, S::kWarmingUp},
    Transition{S::kWarmingUp, E::kFailure, S::kDetecting},
    Transition{S::kWarmingUp, E::kPhaseDone, S::kRunning},
    Transition{S::kWarmingUp, E::kBehind, S::kReplaying},
};

}  // namespace

std::span<const Transition> job_transitions() { return kTransitions; }

JobState next_state(JobState from, JobEvent event) {
  for (const Transition& row : kTransitions) {
    if (row.from == from && row.event == event) return row.to;
  }
  HERDSIM_CHECK(false) << "no transition from \"" << kJobStateNames[static_cast<size_t>(from)]
                       << "\" on \"" << kJobEventNames[static_cast<size_t>(event)] << "\"";
  return from;
}

}  // namespace herdsim

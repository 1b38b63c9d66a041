// The life of a training job as a state machine: what it is doing, what can happen to it, and where
// that leads.
//
// Every instant of a campaign is spent in exactly one state, so the time account adds up by
// construction. The table is the whole machine: a pair of state and event that it does not list is
// a defect of the simulator and aborts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace herdsim {

enum class JobState : uint8_t {
  kRunning,
  kReplaying,     // training again what was lost
  kDetecting,     // it has stopped and nobody knows
  kDiagnosing,    // which host, and is it the host
  kRescheduling,  // choosing and preparing hosts
  kWaitingForSpares,
  kStarting,      // processes, images, dependencies
  kInitialising,  // communicators
  kLoading,       // checkpoint
  kWarmingUp,     // compilation, first steps
  kMaintenance,   // planned work on the machine
};
constexpr size_t kJobStates = 11;
constexpr std::array<std::string_view, kJobStates> kJobStateNames = {
    "running",      "replaying",          "detecting",  "diagnosing",
    "rescheduling", "waiting for spares", "starting",   "initialising communicators",
    "loading",      "warming up",         "maintenance"};

enum class JobEvent : uint8_t {
  kFailure,      // unplanned; also while recovering
  kPlannedStop,  // a checkpoint has been taken
  kPhaseDone,
  kHostsMissing,  // no spare for a host that left
  kHostsFound,    // one came back from repair
  kCaughtUp,      // replay has reached the last step it knew
  kBehind,        // ready to train, with lost steps to redo
  kRegroup,       // members of the job change without a restart
};
constexpr size_t kJobEvents = 8;
constexpr std::array<std::string_view, kJobEvents> kJobEventNames = {
    "failure",     "planned stop", "phase done", "hosts missing",
    "hosts found", "caught up",    "behind",     "regroup"};

struct Transition {
  JobState from;
  JobEvent event;
  JobState to;
};

std::span<const Transition> job_transitions();

// Where `event` leads. Requires: the table lists the pair.
JobState next_state(JobState from, JobEvent event);

constexpr bool is_training(JobState s) {
  return s == JobState::kRunning || s == JobState::kReplaying;
}

}  // namespace herdsim

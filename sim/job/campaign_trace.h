// What one replica of a campaign did, for a timeline and for lists of failures: recorded only where
// somebody asks, since it grows with the run, up to `kMostEntries`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/job/job_state.h"

namespace herdsim {

struct CampaignTrace {
  // Beyond this many entries of all kinds nothing more is recorded: a year of a job that fails
  // every minute. Phases then end before the horizon.
  static constexpr size_t kMostEntries = 1'000'000;

  struct Phase {
    JobState state = JobState::kRunning;
    Instant begin, end;
    bool planned = false;
  };
  // Something that happened to the machine.
  struct Incident {
    Instant at;
    std::string what;   // failure class, or "corruption begins", "slow host taken out", ...
    int64_t hosts = 0;  // that left
    int64_t gpu = 0;    // rank of the victim
    bool planned = false;
    // Of those that stop the job: until training went on, what was thrown away, and what brought it
    // back ("spare host; remote store"). Zero and "" for others, and where the horizon came first.
    bool stops = false;
    Duration down, lost_work;
    std::string recovered_by;
  };
  // From `at` on: steps an hour of wall time, 0 while it stands still; and of the time so far, the
  // share that trained steps which are kept.
  struct Pace {
    Instant at;
    double steps_per_hour = 0;
    double effective = 0;
  };
  // A stretch of training with one schedule of saves to the slowest tier.
  struct Saves {
    Instant begin, end;
    int64_t count = 0;
    int64_t every_steps = 0;
  };
  struct Hosts {
    Instant at;
    int64_t spare = 0, in_repair = 0, missing = 0;
  };
  std::vector<Phase> phases;  // without gaps, from 0 to the horizon
  std::vector<Incident> incidents;
  std::vector<Pace> pace;
  std::vector<Saves> saves;
  std::vector<Hosts> hosts;

  bool has_room() const {
    return phases.size() + incidents.size() + pace.size() + saves.size() + hosts.size() <
           kMostEntries;
  }
};

}  // namespace herdsim

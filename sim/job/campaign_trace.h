// What one replica of a campaign did, for a timeline: recorded only where somebody asks, since it
// grows with the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/job/job_state.h"

namespace herdsim {

struct CampaignTrace {
  struct Phase {
    JobState state = JobState::kRunning;
    Instant begin, end;
    bool planned = false;
  };
  struct Incident {
    Instant at;
    std::string what;  // failure class, "remote snapshot", "host back"
    int64_t hosts = 0;
    int64_t gpu = 0;
  };
  // Steps an hour of wall time from `at` on: the throughput counter.
  struct Pace {
    Instant at;
    double steps_per_hour = 0;
  };
  std::vector<Phase> phases;  // without gaps, from 0 to the horizon
  std::vector<Incident> incidents;
  std::vector<Pace> pace;
};

}  // namespace herdsim

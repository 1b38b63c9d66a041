// What one replica of a campaign did, for a timeline and for lists of failures: recorded only where
// somebody asks, since it grows with the run.
//
// It grows up to `most_entries`, which takes some 20 MB as a Perfetto file: a year of 131,072 GPUs
// has a third of them. Beyond, all of it is thinned to a grain of time, twice as coarse each time,
// so that it covers the whole run: of each grain the last sample of a counter, one phase (the
// longest, over the time of all), one stretch of saves, and of each kind of incident the one that
// cost most, with the number of those it stands for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/job/job_state.h"

namespace herdsim {

struct CampaignTrace {
  size_t most_entries = 1'000'000;
  Duration grain;  // zero: everything is here

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
    bool is_open = false;  // the job has not come back yet
    int64_t like_it = 0;   // others of its kind in its grain that are not shown
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

  size_t entries() const {
    return phases.size() + incidents.size() + pace.size() + saves.size() + hosts.size();
  }
  // Thins where it is full; whether it did, so that places in `incidents` are new.
  bool make_room();
  // "thinned: of every 8 min ...", for people; "" where everything is here.
  std::string thinning() const;

 private:
  void thin();  // to the grain
};

}  // namespace herdsim

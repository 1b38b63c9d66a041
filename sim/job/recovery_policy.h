// How a job comes back. One row a policy: what replaces a lost host, which phases of the way up are
// needed, and how long they take relative to a full restart.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/provenance.h"

namespace herdsim {

// Where hosts for the place of lost ones come from.
enum class Replacement : uint8_t {
  kSpares,  // the pool; empty: wait for a repair
  kRepair,  // the same hosts, once mended
  kShrink,  // the pool; empty: train on with fewer replicas, grow back when hosts return
};

struct RecoveryPolicy {
  std::string_view name, help;
  Replacement replacement = Replacement::kSpares;
  // A failure that leaves all hosts standing restarts on them: nothing is rescheduled, images and
  // processes stay.
  bool in_place = false;
  double in_place_start = 1;  // its start over that of a full restart
  // One replica of the data-parallel dimension restarts; the others stall for `regroup` and train
  // on without it.
  bool per_replica = false;
  // Processes on hosts that stand live on, and with them what GPUs hold.
  bool keeps_processes = false;
  // The whole failure domain of a lost host moves elsewhere: more hosts, same phases.
  bool moves_domain = false;
  // Traffic of a dead NIC or cable moves to the host's other rails; the job goes on, slower, until
  // it is mended.
  bool rail_failover = false;
  // Phases over those of a full restart.
  double diagnosis = 1, reschedule = 1, start = 1, init = 1, warmup = 1;
  double regroup_seconds = 0;
  Evidence evidence = Evidence::kPublished;
  std::string_view source;
};

const std::vector<RecoveryPolicy>& recovery_policies();
const RecoveryPolicy* find_recovery_policy(std::string_view name);

// The way up at 16,384 GPUs; detection is the failure class's, the load the checkpoint's.
struct PhaseTimes {
  double diagnosis_s = 120;   // MegaScale: detection and diagnosis below 10 min on average
  double reschedule_s = 180;  // AIReSim's host selection, with a spare at hand
  double start_s = 60;        // assumed
  double init_s = 30;         // MegaScale: below 30 s above 10,000 GPUs
  double warmup_s = 60;       // assumed: compilation and one to three slow steps
  double maintenance_s = 0;   // of a planned stop, before the restart
};

}  // namespace herdsim

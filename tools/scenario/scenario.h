// A scenario as values: what a file, its catalogue names, `--set` and the documented defaults
// resolve to. Everything here has been validated; code that takes a Scenario never reports an input
// error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/job/campaign_request.h"
#include "sim/models/device_profile.h"
#include "sim/models/software_stack.h"
#include "sim/opgraph/collective_rules.h"
#include "topologies/cluster.h"
#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"

namespace herdsim {

// What a publication printed for this very configuration; only ever compared with.
struct PublishedResult {
  double model_tflops_per_gpu = 0;
  double mfu = 0;
  std::string source;
};

// Bus bandwidth of the whole job at 1 GiB as a run measured it in itself; zero where it did not.
struct MeasuredNetwork {
  Bandwidth all_reduce, all_gather, reduce_scatter;
};

// Shares of the links of a tier that others take all the time, and the job's own flows to and from
// its store.
struct OtherTraffic {
  double tor_uplinks = 0, pod_uplinks = 0;
  bool saving = false;
  Duration save_begins;  // after the step
  double save_left = 1;  // share of a save that is left then
  bool loading = false;

  bool has_storage() const { return saving || loading; }
};

struct OtherJob;

struct Scenario {
  std::string name;
  ModelArchitecture model;
  ClusterSpec cluster;
  DeviceProfile profile;
  SoftwareStack software;
  MeasuredNetwork measured_network;
  int64_t gpus = 0;
  ParallelPlan plan;
  Training training;
  ReliabilityRequest reliability;
  CheckpointRequest checkpoint;
  RecoveryRequest recovery;
  RunRequest run;
  uint64_t seed = 1;
  std::optional<PublishedResult> published;
  std::vector<OtherJob> other_jobs;
  OtherTraffic other_traffic;
  std::vector<CollectiveRule> collectives;
  // What is allowed but unusual, in full sentences.
  std::vector<std::string> warnings;
  // The effective scenario in text format, every default filled in, each with where it comes from.
  std::string effective_text;
};

// Another job on the same machine: its scenario has this one's cluster, with hosts that nobody
// before it uses.
struct OtherJob {
  Scenario scenario;  // has no other jobs
  Duration begins;    // its step, after that of the job that names it
};

}  // namespace herdsim

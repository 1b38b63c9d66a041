// Where checkpoints go, how often and at what price. One row a policy, one row a medium.
//
// A save has two costs: `block`, the time training stands still, and `persist`, the time from then
// until the snapshot is durable; a failure in between finds the one before. A snapshot serves a
// failure only if its medium survived it: memory of a lost host is gone unless a copy is elsewhere.
//
//   const CheckpointPlan plan = plan_checkpoints(*find_checkpoint_policy("async"), settings, size,
//   storage, step_time);
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/provenance.h"
#include "sim/base/time.h"
#include "sim/base/units.h"
#include "sim/storage/shared_store.h"

namespace herdsim {

// What a failure leaves standing, from mild to wide.
enum class Severity : uint8_t {
  kProcess,
  kHost,
  kDomain
};  // no host lost; one host; several at once

// A replica's HBM holds the state anyway; a copy in a peer's HBM takes room beside it.
enum class Medium : uint8_t { kPeerHbm, kHbmCopy, kHostMemory, kNvme, kRemote };
constexpr size_t kMedia = 5;
constexpr std::array<std::string_view, kMedia> kMediumNames = {
    "peer HBM", "HBM copy on a peer", "host memory and peer copy", "node NVMe", "remote store"};
constexpr std::array<Severity, kMedia> kMediumSurvives = {
    Severity::kHost, Severity::kHost, Severity::kHost, Severity::kProcess, Severity::kDomain};

// How training waits for a save.
enum class Blocking : uint8_t {
  kWholeWrite,  // synchronous: until it is durable
  kCopy,        // asynchronous: until the shard is copied out of the GPU
  kOverlapped,  // hidden behind the step but for a constant
};

// How the interval of the remote tier is chosen; the others follow their own step counts.
enum class IntervalRule : uint8_t { kFixed, kYoung, kDaly, kAdaptive };
constexpr std::array<std::string_view, 4> kIntervalRuleNames = {"fixed", "young", "daly",
                                                                "adaptive"};

struct TierRow {
  Medium medium = Medium::kRemote;
  Blocking blocking = Blocking::kCopy;
  int64_t every_steps = 0;    // 0: by the interval of the scenario
  int64_t full_every = 1;     // of an incremental tier: one full snapshot in this many
  double delta_fraction = 1;  // bytes of the others, over a full one
};

struct CheckpointPolicy {
  std::string_view name, help;
  std::vector<TierRow> tiers;
  // Healthy data-parallel replicas save when a failure strikes that leaves one of them whole: no
  // step is lost.
  bool just_in_time = false;
  Evidence evidence = Evidence::kPublished;
  std::string_view source;
};

const std::vector<CheckpointPolicy>& checkpoint_policies();
const CheckpointPolicy* find_checkpoint_policy(std::string_view name);

// What storage gives this job. The remote defaults reproduce ByteCheckpoint's 405B on 8,960 GPUs
// (NSDI'25): 0.59 s blocked, 51 s saved, 129 s loaded.
struct StorageModel {
  double write_gb_per_s = 104;        // what the whole job's save pipeline reaches
  double read_gb_per_s = 41;          // unique bytes; a read storm fans them out over the fabric
  double shared_cap_gb_per_s = 2000;  // the store, sustained (Tectonic)
  double background_share = 0;        // of the cap, taken by other jobs
  // What the job's own data loaders read from the same store. A write and the loaders share what is
  // left of the cap by max-min fairness; loaders that get less than they need slow training down
  // for as long as the write lasts.
  double data_loading_gb_per_s = 0;
  double copy_out_gb_per_s_per_gpu = 1;  // GPU to host; DataStates-LLM saw 1.2 to 6 raw
  double peer_gb_per_s_per_gpu = 25;     // over the fabric to another host, half of 400 Gb/s
  double nvme_gb_per_s_per_host = 3;     // assumed, 2 to 4
  double memory_save_block_s = 0.04;     // ByteRobust, SOSP'25: 0.01 to 0.04 s a step
  double attach_s = 3;                   // finding a peer's copy: "a few seconds"
  double planning_s = 0;  // metadata and planning of a save; 62 s uncached (ByteCheckpoint)
  double wait_s = 0;      // mean queue in front of a shared store, see shared_storage_wait()
  // The store, see sim/storage/shared_store.h. Tectonic's peak is 7 TB/s, "for short durations":
  // how long is assumed. Its rates are what clients see, so a byte written counts once.
  double burst_factor = 3.5, burst_s = 60;
  double client_gb_per_s = 5;        // a host's client; assumed, 2 to 8
  double frontend_gbit_per_s =
      400;  // a host's port to the storage network; of a scenario, its cluster's
  int64_t files_per_gpu = 1;
  double files_per_second = 10'000;  // of one directory: a metadata shard of Tectonic (FAST'21)
  int64_t directories = 1;
  double write_amplification = 1;
  double capacity_petabytes = 240;
  double bytes_kept_per_byte = 1.67;  // Reed-Solomon 9 + 6
  // Of the remote tier as somebody measured them, instead of what follows from sizes and
  // bandwidths; 0: as it follows.
  double measured_block_s = 0, measured_save_s = 0, measured_load_s = 0;
};

// The store of this model, without what other jobs take of it all the time.
SharedStore shared_store(const StorageModel& storage);

struct CheckpointSize {
  Bytes total;  // weights, master copy and moments, once
  int64_t gpus = 1;
  int64_t gpus_per_host = 8;
  int64_t data_parallel = 1;  // copies that already exist
};

// A tier in ticks and steps.
struct CheckpointTier {
  Medium medium = Medium::kRemote;
  int64_t period_steps = 1;
  bool follows_interval = false;
  // Of `block`, the loss to data loaders that a write slows is spread over the write.
  Duration block, persist, delta_persist, load, delta_load;
  int64_t full_every = 1;

  // Of the snapshot at `step`, a multiple of the period.
  Duration persist_of(int64_t step) const {
    return (step / period_steps) % full_every == 0 ? persist : delta_persist;
  }
  Duration load_of(int64_t step) const {
    return load + delta_load * ((step / period_steps) % full_every);
  }
};

struct CheckpointPlan {
  std::vector<CheckpointTier> tiers;
  bool just_in_time = false;
  // What snapshots take of every GPU's memory, all the time: two copies of a peer's shard, so that
  // one is whole while the other is written (assumed); shards of equal size.
  Bytes hbm_a_gpu;
  std::vector<std::string> warnings;
};

// The job as the store sees it.
StoreTenant store_tenant(const CheckpointSize& size, const StorageModel& storage,
                         Duration interval);

// Costs and periods of a policy, with other jobs on the store; the saves of those are at any phase
// of this job's. An interval is a whole number of steps, at least one. Where a save takes longer
// than its interval, saves would queue: the period is stretched to the save and a warning names it.
CheckpointPlan plan_checkpoints(const CheckpointPolicy& policy, Duration interval,
                                const CheckpointSize& size, const StorageModel& storage,
                                Duration step_time, std::span<const StoreTenant> others = {});

// Without the tiers in HBM, which every process that ends takes along.
void drop_hbm_copies(CheckpointPlan& plan);

// Sets the period of the tiers that follow the interval, by the same rule; used when the interval
// adapts.
void set_interval(CheckpointPlan& plan, Duration interval, Duration step_time);

}  // namespace herdsim

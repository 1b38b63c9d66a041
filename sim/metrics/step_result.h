// What one simulated optimizer step answers: a plain record that reports print, databases store and
// tests compare.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace herdsim {

// Where a rank's time goes. At every instant of the step each rank is in exactly one of these.
enum class TimeTerm : uint8_t {
  kCompute,      // GEMMs and attention
  kMemoryBound,  // element-wise kernels, norms, loss, gradient accumulation
  kExposedTp,    // waiting for tensor-parallel transfers
  kExposedCp,
  kExposedEp,
  kExposedPp,  // waiting for an activation that is on the wire
  kExposedDp,  // waiting for parameter gathers or gradient reductions
  kBubble,     // waiting for another stage that has not computed yet
  kOptimizer,
  kStraggler,  // compute beyond that of a nominal GPU, and waiting for slower members of a group
  kLoader,     // waiting for the next batch
  kOther,      // host time, and compute slowed by transfers that take its SMs
};
constexpr size_t kTimeTerms = 12;
constexpr std::array<std::string_view, kTimeTerms> kTimeTermNames = {
    "compute",    "memory_bound", "exposed_tp", "exposed_cp", "exposed_ep", "exposed_pp",
    "exposed_dp", "bubble",       "optimizer",  "straggler",  "data_loader", "other"};

constexpr size_t kMostLinkUses = 64;

using TimeAccount = std::array<Duration, kTimeTerms>;

// Peak memory of one pipeline stage: the moment of the schedule at which it is highest and what it
// is made of.
struct StageMemory {
  int64_t stage = 0;
  Bytes peak;
  std::string moment;  // "forward of micro-batch 15, chunk 7"
  Bytes weights, gradients, optimizer, activations, logits, communication, overhead;
};

// Links that carry the same in a step, such as the uplinks of all racks of a pod.
struct LinkUse {
  std::string tier;   // "nic-tor", as link_kind_name() says
  std::string first;  // the first of them: "ToR 12 up", "NIC of GPU 37 both ways"
  int64_t links = 0;
  Bandwidth capacity;  // of one, when the step begins
  Bytes carried;       // by one
  struct Load {
    std::string transfer;  // "DP all-gather", "PP send", "save", "other jobs"
    Bytes carried;
  };
  std::vector<Load> loads;  // the largest first; they sum to `carried`

  // Share of the step for which the link would be full if it carried all at its capacity.
  double use(Duration step) const;
  std::string loads_text() const;  // "DP all-gather 80 %, PP send 20 %"
};

// All links of a tier that something crosses.
struct TierUse {
  std::string tier;
  int64_t links = 0;
  double mean_use = 0, highest_use = 0;
};

// What routing makes of the transfers of one kind: hashed flows that meet on a lane.
struct Collisions {
  std::string transfers;      // "DP", "PP"
  double slowest_factor = 1;  // of the wire's rate, on the slowest connection, which the others wait for
  double mean_factor = 1;
  double error = 0;           // standard deviation of slowest_factor over seeds
  int64_t connections = 0;
};

// The time account of a class of ranks that do the same.
struct RankClassTime {
  int64_t stage = 0, first_rank = 0;
  int64_t ranks = 0;  // in the class
  std::array<int64_t, kTimeTerms> nanoseconds{};  // of one of them; sums to the step time
};

// A job of a machine that several share: its step beside the others and alone.
struct JobShare {
  std::string name;
  int64_t gpus = 0;
  Duration begins;  // its step, after the first job's
  Duration step_time, alone;
  double mfu = 0, mfu_alone = 0;  // causal
};

// A flow between the GPUs of the job and its store, beside the transfers of the step.
struct StorageFlow {
  std::string what;  // "save", "read"
  std::string job;   // whose, where it is another one's on the machine
  Bytes bytes;       // of the whole job
  Duration begins;   // after the step of this job
  Duration took;     // to its last byte; what is left when the step has ended has the links for itself
};

struct StepResult {
  std::string scenario;
  int64_t gpus = 0;
  Duration step_time;
  int64_t tokens_per_step = 0;

  // Model FLOPs of the whole step, counting 6 a parameter and token plus attention, causal half or
  // full square.
  Flops model_flops_causal, model_flops_full;
  FlopRate peak;  // dense, of the compute type, one GPU
  std::string dtype;

  // Sums over all ranks; `time_account()` divides. The sum of the terms is gpus * step_time
  // exactly.
  std::array<int64_t, kTimeTerms> account_rank_nanoseconds{};
  std::vector<TimeAccount> stage_account;  // mean rank of each pipeline stage

  std::vector<StageMemory> memory;  // by stage
  Bytes memory_capacity;

  // What follows from the times above and is not part of the fingerprint: links by use, the most
  // used first, at most kMostLinkUses; every tier; and what hashing costs, where it costs anything.
  std::vector<LinkUse> links;
  std::vector<TierUse> tiers;
  std::vector<Collisions> collisions;

  // Not part of the fingerprint either: every job of the machine, this one first; empty where it is the only one.
  std::vector<JobShare> jobs;
  // Nor these: what went to and came from the store beside the step, and the step without that; empty where nothing did.
  std::vector<StorageFlow> storage;
  Duration without_storage;
  // A step with no save beside it, which most of weeks are.
  Duration between_saves() const { return storage.empty() ? step_time : without_storage; }

  // How it was simulated; not part of the fingerprint.
  std::vector<RankClassTime> class_account;  // every rank is in one of them
  int64_t simulated_ranks = 0;
  int64_t events = 0;
  double wall_seconds = 0;

  std::vector<std::string> warnings;

  // The rates. Requires: gpus > 0 and a step time above zero; the utilisations also a peak above
  // zero.
  double tokens_per_second_per_gpu() const;
  FlopRate flops_per_gpu_causal() const;
  FlopRate flops_per_gpu_full() const;
  double mfu_causal() const;
  double mfu_full() const;
  // Mean share of the step that a rank spends in the bubble. The (pp - 1) / (virtual stages *
  // micro-batches) of the literature divides by the busy time instead and is larger.
  double bubble_fraction() const;
  // Mean over ranks, seconds; sums to the step time to the clock's tick.
  std::array<double, kTimeTerms> time_account_seconds() const;
  const StageMemory* peak_stage() const;  // the first of equals; null without stages
  bool fits() const;  // true without stages: nothing is known to exceed the capacity
  // `warnings`, then what the figures themselves give away: more work than the peak allows, an
  // account that does not add up, memory beyond the device. Each says what to look at.
  std::vector<std::string> all_warnings() const;
  // Of everything above but the warnings' wording and how it was simulated: folded and unfolded
  // runs agree on it.
  std::string fingerprint() const;
};

}  // namespace herdsim

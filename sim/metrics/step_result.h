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

using TimeAccount = std::array<Duration, kTimeTerms>;

// Peak memory of one pipeline stage: the moment of the schedule at which it is highest and what it
// is made of.
struct StageMemory {
  int64_t stage = 0;
  Bytes peak;
  std::string moment;  // "forward of micro-batch 15, chunk 7"
  Bytes weights, gradients, optimizer, activations, logits, communication, overhead;
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

  // How it was simulated; not part of the fingerprint.
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

// The fastest plans of a space, found without simulating all of it.
//
// Best first: candidates wait in the order of a lower bound of their step (step_bound.h). What
// comes up with the quick bound gets the tighter one and waits again; with the tighter one, its
// memory is checked pass by pass and its step simulated. When no bound left is below the k-th best
// step found, no candidate left can be among the best k, and the search ends.
//
// Candidates are taken in rounds of a fixed size and a round is done in parallel, so that neither
// the answer nor the counts depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/metrics/step_result.h"
#include "tools/study/plan_space.h"

namespace herdsim {

struct RankedPlan {
  PlanCandidate candidate;
  StepResult step;
};

// What comes closest where nothing fits.
struct ClosestPlan {
  PlanCandidate candidate;
  StageMemory stage;  // that takes most
};

struct PlanSearch {
  int64_t gpus = 0;
  Bytes capacity;
  int64_t candidates = 0;
  int64_t over_least_memory = 0;   // state and one micro-batch alone do not fit
  int64_t over_walked_memory = 0;  // their schedule's own walk does not
  int64_t outbid_by_quick = 0, outbid_by_timeline = 0;
  int64_t simulated = 0;
  std::vector<RankedPlan> best;  // the fastest first; equals in the order of the space
  std::optional<ClosestPlan> closest;

  int64_t over_memory() const { return over_least_memory + over_walked_memory; }
  int64_t outbid() const { return outbid_by_quick + outbid_by_timeline; }
};

struct PlanOptions {
  int64_t keep = 5;
  int threads = 1;
  // Called between rounds with how many candidates are settled; may be empty.
  std::function<void(int64_t settled, int64_t of)> progress = {};
};

// `base.gpus` GPUs; the base's own plan plays no part but for expert parallelism.
PlanSearch search_plans(const Scenario& base, const PlanPins& pins, const PlanOptions& options);

// What keeps a plan from its peak most: the largest loss of its time account, "bubble 12.3 %".
std::string largest_loss(const StepResult& step);

}  // namespace herdsim

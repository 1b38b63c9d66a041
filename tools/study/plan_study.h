// All that is asked of one `plan`: GPU counts searched one by one, what training takes with the
// best of each, what was asked for and is not met, and the whiteboard beside it.
//
// Without counts there are two answers: the fewest GPUs whose memory holds the model, and, with a
// deadline, the fewest that meet it. Counts are whole hosts in steps of an eighth of the power of
// two below (1,024, 1,152, ... 2,048), since few others divide a batch.
//
//   const PlanReport report = plan_study({.model = "llama3-70b", .cluster = "dgx-superpod-16k",
//                                         .tokens = 15e12, .deadline_days = 60});
//   report.answers[1].search.gpus   // 2,816
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/study/plan_report.h"

namespace herdsim {

struct PlanQuestion {
  std::string model, cluster;
  std::string profile = "h100-sxm5-80gb", software = "megatron-te";
  std::vector<std::string> sets;  // pins (plan_space.h) and changes of the scenario
  std::vector<int64_t> gpus;
  double tokens = 0, deadline_days = 0, budget_usd = 0;  // zeros: not asked
  double memory_gigabytes = 0;                           // 0: all the GPU has
  Prices prices;
  double availability = 0.99;  // chance that a failed host finds a spare waiting
  int64_t keep = 5;
  bool weak_scaling = false;  // the batch of the first count grows with the others
  bool formulas = false;
  int threads = 1;
  // Called between rounds of a search; may be empty.
  std::function<void(int64_t settled, int64_t of, int64_t gpus)> progress = {};
};

// One GPU and no parallelism: what is searched has no say in it, and everything else is checked.
// Takes what it holds fixed out of `question.sets`. Throws: SpecError.
Scenario plan_base(const PlanQuestion& question, PlanPins& pins);

// Throws: SpecError for what is no question; what has no answer is in the report.
PlanReport plan_study(const PlanQuestion& question);

}  // namespace herdsim

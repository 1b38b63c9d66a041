// Ranked plans for people, programs and spreadsheets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/formula_sheet.h"
#include "tools/study/plan_cost.h"
#include "tools/study/plan_search.h"

namespace herdsim {

// One bound that the best plan does not meet: "74.1 days, 20.1 (37 %) over the 54 allowed".
struct MissedGoal {
  std::string goal;  // "plan", "deadline_days", "budget_usd"
  double has = 0, allowed = 0;
  std::string text;
};

// One GPU count: its plans, and what training takes with the best of them.
struct PlanAnswer {
  std::string asked;  // "the fewest GPUs in 60 days", or empty where the count was given
  int64_t global_batch = 0;
  PlanSearch search;
  std::optional<PlanCost> cost;  // where tokens were given and a plan fits
  std::vector<MissedGoal> missed;
  std::optional<FormulaSheet> formulas;  // where they were asked for and a plan fits
  std::vector<int64_t> gpus_with_plans;  // near this count, where it has no candidate at all
};

struct PlanReport {
  std::string model, cluster;
  int64_t gpus_per_host = 8;
  Prices prices;
  bool weak_scaling = false;        // the batch grows with the GPUs
  std::vector<PlanAnswer> answers;  // by GPU count, as asked
  std::vector<std::string> warnings;
};

// Of the best plans, over the first count that has one.
struct ScalingPoint {
  int64_t gpus = 0, global_batch = 0;
  double tokens_per_second = 0;
  double speed_up = 0;
  double efficiency = 0;  // of a GPU, over one of the first count
};
std::vector<ScalingPoint> scaling_curve(const PlanReport& report);

// At most 80 columns but for the names of plans.
std::string plan_table(const PlanReport& report);
std::string plan_json(const PlanReport& report);
// A line a plan.
std::string plan_csv(const PlanReport& report);

}  // namespace herdsim

// The whiteboard beside the simulation: each closed form for one plan, and what the simulated step
// says of the same thing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/plan_cost.h"
#include "tools/study/plan_search.h"

namespace herdsim {

struct FormulaRow {
  std::string name;     // "tokens a GPU, FSDP + TP"
  std::string formula;  // "a_nic a_nvlink / F"
  double value = 0;     // of the formula
  std::string unit;
  std::optional<double> plan;       // what the plan has, in the same unit
  std::optional<double> simulated;  // what the simulation says, in `simulated_unit`
  std::string simulated_unit;       // "% of the step waits for DP"
  std::string note;                 // where the whiteboard is wrong here
};

struct FormulaSheet {
  int64_t gpus = 0;
  std::string plan;
  std::vector<FormulaRow> rows;
  std::vector<std::string> decision;  // which parallelism the whiteboard advises, step by step
};

// `base` with the best plan and its step; `cost` where tokens were given. `first` is the best plan
// of the first of several GPU counts, or null.
FormulaSheet formula_sheet(const Scenario& base, const RankedPlan& best, const PlanCost* cost,
                           const RankedPlan* first);

std::string formula_table(const FormulaSheet& sheet);

}  // namespace herdsim

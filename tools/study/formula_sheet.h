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
  std::string formula;  // "B / N > C^2 / (W_nic W_nvlink F)"
  double value = 0;     // of the formula
  std::string unit = {};
  std::optional<double> plan = {};       // what the plan has, in the same unit
  std::optional<double> simulated = {};  // what the simulation says, in `simulated_unit`
  std::string simulated_unit = {};       // "% of the step waits for DP"
  std::string note = {};                 // where the whiteboard is wrong here
};

// A step of the whiteboard's choice of parallelism.
struct Decision {
  std::string text;                 // "FSDP alone needs 19,788 tokens a GPU and has 512: ..."
  std::optional<PlanPins> weighed;  // the plans that it is about
  std::string simulated = {};       // what the simulation says of the best of them
};

struct FormulaSheet {
  int64_t gpus = 0;
  std::string plan;  // "" where there is none
  std::vector<FormulaRow> rows;
  std::vector<Decision> decision;
};

// Of all parameters those that a token visits: all of a dense model.
double active_parameters(const ModelArchitecture& model);

// `base` with the best plan and its step; `cost` where tokens were given. `first` is the best plan
// of the first of several GPU counts, or null.
FormulaSheet formula_sheet(const Scenario& base, const RankedPlan& best, const PlanCost* cost,
                           const RankedPlan* first);

// The same without a simulation: `base` on its GPUs, and what `pins` say of a plan (what they leave
// out is 1, and data parallelism has the GPUs that are left).
FormulaSheet whiteboard_sheet(const Scenario& base, const PlanPins& pins);

std::string formula_table(const FormulaSheet& sheet);
std::string formula_json(const FormulaSheet& sheet);

}  // namespace herdsim

// Ranked plans for people, programs and spreadsheets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/plan_search.h"

namespace herdsim {

// One GPU count: its plans, and what training takes with the best of them.
struct PlanAnswer {
  PlanSearch search;
  std::optional<PlanCost> cost;     // where tokens were given and a plan fits
  std::vector<std::string> missed;  // "takes 61.2 days, 54 were allowed"
};

struct PlanReport {
  std::string model, cluster;
  double tokens = 0;
  double dollars_per_gpu_hour = 0;
  std::vector<PlanAnswer> answers;  // by GPU count, as asked
};

// At most 80 columns but for the names of plans.
std::string plan_table(const PlanReport& report);
std::string plan_json(const PlanReport& report);
// A line a plan.
std::string plan_csv(const PlanReport& report);

}  // namespace herdsim

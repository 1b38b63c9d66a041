// What the rules between fields of a scenario are written with; each file of rules is a class of its own.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/scenario/field_origins.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

class RelationRules {
 public:
  // All must outlive this object.
  RelationRules(const Scenario& scenario, SpecReport* report, std::vector<std::string>* warnings)
      : s_(scenario), p_(scenario.plan), report_(report), warnings_(warnings) {}

 protected:
  bool sound(std::initializer_list<std::string_view> paths) const { return report_->sound(paths); }
  void fault(std::string_view path, std::string problem, std::string allowed = "") {
    report_->add(path, std::move(problem), std::move(allowed));
  }
  void warn(std::string text) { warnings_->push_back(std::move(text)); }

  const Scenario& s_;
  const ParallelPlan& p_;
  SpecReport* report_;
  std::vector<std::string>* warnings_;
};

// The divisors of `n` up to `limit`, the first two dozen: "1, 2, 4".
std::string divisors_of(int64_t n, int64_t limit);

// The model, and how its experts are shared out.
void check_model(const Scenario& scenario, SpecReport* report, std::vector<std::string>* warnings);
// The parallel plan, the sequence, the batch and the schedule.
void check_plan(const Scenario& scenario, SpecReport* report, std::vector<std::string>* warnings);

}  // namespace herdsim

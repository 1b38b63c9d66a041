// Named fleets: which failure classes and slow components a scenario starts from. One row a fleet.
//
//   reliability { base: "llama3-54-days" rate_scale: 0.5 }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/slow_component.h"

namespace herdsim {

struct BaseClass {
  std::string_view name;
  std::optional<double> rate_per_hour;  // instead of the row's, in the row's units
};

struct ReliabilityBase {
  std::string_view name, help, source;
  std::vector<BaseClass> classes;
  std::vector<std::string_view> slow;
};

const std::vector<ReliabilityBase>& reliability_bases();
const ReliabilityBase* find_reliability_base(std::string_view name);

// The classes of a base as values, in the order of its list, with its rates.
std::vector<FailureClass> classes_of(const ReliabilityBase& base);
std::vector<SlowComponent> slow_components_of(const ReliabilityBase& base);

// Sum of the rates that stop a job of this size unplanned, an hour: corruption counts once it is
// noticed.
double unplanned_rate_per_hour(const std::vector<FailureClass>& classes,
                               const FailureDomains& domains);

}  // namespace herdsim

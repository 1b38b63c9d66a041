// What the checks of a cluster share: faults with the field's name in front.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace herdsim {

class ClusterCheck {
 public:
  // `prefix` comes before each field: "cluster." or nothing. `faults` must outlive this object.
  ClusterCheck(std::string_view prefix, Faults& faults) : prefix_(prefix), faults_(faults) {}

  void positive(std::string_view field, int64_t value);
  void positive(std::string_view field, Bandwidth value);
  void factor(std::string_view field, double value);
  void factor_or_zero(std::string_view field, double value);
  void multiple(std::string_view field, int64_t value, std::string_view of, int64_t unit);
  void add(std::string_view field, std::string problem, std::string allowed,
           std::string nearest = "");

 private:
  std::string prefix_;
  Faults& faults_;
};

}  // namespace herdsim

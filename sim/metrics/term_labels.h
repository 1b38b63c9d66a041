// The terms of the time account as people read them.
#pragma once

#include <array>
#include <string_view>

#include "sim/metrics/step_result.h"

namespace herdsim {

constexpr std::array<std::string_view, kTimeTerms> kTermLabels = {
    "compute",    "memory-bound kernels", "exposed TP", "exposed CP", "exposed EP", "exposed PP",
    "exposed DP", "pipeline bubble",      "optimizer",  "stragglers", "data loader", "other"};

// Requires: `term` is one of kTimeTermNames.
constexpr std::string_view label_of(std::string_view term) {
  size_t at = 0;
  while (kTimeTermNames[at] != term) ++at;
  return kTermLabels[at];
}

}  // namespace herdsim

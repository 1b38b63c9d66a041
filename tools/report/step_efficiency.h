// Why one step is less efficient than another, whatever their sizes: GPU time for the same
// training, term by term.
//
// A step of T tokens on N GPUs spends N * step_time GPU-seconds; every one of them is in one term
// of the account. Divided by T, steps of different sizes compare: the terms sum to the difference,
// and MFU is inversely proportional to the sum.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics/step_result.h"

namespace herdsim {

struct EfficiencyTerm {
  std::string_view term;  // of kTimeTermNames
  double a = 0, b = 0;    // GPU-seconds a million tokens
  // Of B's MFU: what the term adds to (mfu_b - mfu_a), in points. All terms together are the
  // difference.
  double mfu_points = 0;
};

// All terms, the largest difference first. The points share out MFU_b - MFU_a in proportion to the
// terms' differences.
std::vector<EfficiencyTerm> efficiency_terms(const StepResult& a, const StepResult& b);

// At most 80 columns; a sentence, then the table.
std::string efficiency_table(const StepResult& a, const StepResult& b);
std::string efficiency_json(const StepResult& a, const StepResult& b);

// Of three steps and more what each spends beyond the first, term by term: GPU-seconds a million
// tokens, scenarios lettered as in comparison_table().
std::string efficiency_matrix(std::span<const StepResult> steps);

}  // namespace herdsim

// Several steps side by side, and two steps as the terms that lie between them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics/step_result.h"

namespace herdsim {

// One term of the time account in both steps, seconds of the mean rank.
struct DifferenceTerm {
  std::string_view term;  // of kTimeTermNames
  double a_s = 0, b_s = 0;
  double difference_s() const { return b_s - a_s; }
};

// All terms, the largest difference first, ties in the order of the account. Every rank is in one
// term at every instant, so the differences sum to that of the step times, to the nanosecond.
std::vector<DifferenceTerm> difference_terms(const StepResult& a, const StepResult& b);

// "B takes 0.42 s longer: 0.40 s of exposed TP, ..." as a table of at most 80 columns. Says so
// where the two steps train different numbers of tokens or on different numbers of GPUs, so that
// their times answer different questions.
std::string difference_table(const StepResult& a, const StepResult& b);

// {"a", "b", "step_time_s": {"a", "b", "difference"}, "mfu": {...}, "tokens_per_second_per_gpu":
// {...},
//  "peak_memory_bytes": {...}, "terms_s": [{"term", "a", "b", "difference"}, ...]}
std::string difference_json(const StepResult& a, const StepResult& b);

// A row of figures for each and the shares of the time account, scenarios lettered A, B, ...; at
// most 80 columns.
std::string comparison_table(std::span<const StepResult> results);

}  // namespace herdsim

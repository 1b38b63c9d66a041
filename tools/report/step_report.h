// One step's result for people, for programs and for spreadsheets.
//
//   std::cout << step_table(result, PublishedFigures{.source = "Llama 3, table 4", .mfu = 0.41});
//
// Printers return text and print nothing; they say what the record says and compute nothing of
// their own.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/metrics/step_result.h"

namespace herdsim {

// What a publication printed for the same configuration, in the conventions of StepResult.
struct PublishedFigures {
  std::string source;
  std::optional<double> model_tflops_per_gpu;
  std::optional<double> mfu;
};

// At most 80 columns: the headline with the convention of its MFU in words, predicted beside
// published, where the time goes, memory by stage with what it is made of at its peak, warnings,
// how it was simulated.
std::string step_table(const StepResult& result,
                       const std::optional<PublishedFigures>& published = {});

// One object with exactly the documented keys; numbers in full precision, so that the terms of
// time_account_s still sum to step_time_s to the nanosecond. What is unknown is null.
std::string step_json(const StepResult& result);
// An array of them.
std::string steps_json(std::span<const StepResult> results);

// A line of column names and a line a result (RFC 4180, "\n" ends lines); units are in the names.
// What is unknown is empty.
std::string steps_csv(std::span<const StepResult> results);

}  // namespace herdsim

// Predictions beside measurements: every row, and how far off each software stack is.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/profile/error_summary.h"
#include "sim/base/units.h"
#include "sim/metrics/step_result.h"
#include "tools/validation/row_memory.h"
#include "tools/validation/row_scenario.h"
#include "tools/validation/run_table.h"

namespace herdsim {

struct RowPrediction {
  std::string id, software;
  std::optional<double> predicted_step_time_s, target_step_time_s;
  std::optional<Bytes> peak_memory;    // of the largest rank, with what lies beside the allocator
  std::optional<RowMemory> allocator;  // of the rank that prints
  std::optional<MemoryComparison> of_measured;  // where the row states what was measured
  Bytes device_memory;
  // Where the predicted time goes, mean over ranks, in the order of kTimeTermNames; zeros where
  // skipped.
  std::array<double, kTimeTerms> account_s{};
  std::vector<std::string> assumed;
  std::string skipped_because;  // empty where predicted

  // predicted / target - 1, where both are known.
  std::optional<double> error() const;
};

// How many of the rows are predicted; called from any thread.
using RowProgress = std::function<void(size_t done, size_t of)>;

// In the order of the rows, whatever the number of threads (0: one a core).
std::vector<RowPrediction> predict_rows(const std::vector<RunRow>& rows, const RowParts& parts,
                                        int threads, const RowProgress& progress = {});

// Of all rows with an error, as one group; count 0 where there is none.
ErrorSummary overall_error(const std::vector<RowPrediction>& rows);
// A group a software stack.
std::vector<ErrorSummary> error_by_software(const std::vector<RowPrediction>& rows);
// The same of the memory that rows state.
std::vector<ErrorSummary> memory_error_by_software(const std::vector<RowPrediction>& rows);

std::string validation_table(const std::vector<RowPrediction>& rows);
// A row has its "time_account_s" as in the JSON of a step, null where skipped, and what PyTorch's
// allocator would print (row_memory.h).
// {"rows", "predicted", "skipped", "median_abs_error", "p90_abs_error", "bias"}; errors are null
// without a target.
std::string validation_json(const std::vector<RowPrediction>& rows);
// id,predicted_step_time_s,target_step_time_s,error,peak_memory_bytes,assumed,skipped_because
std::string validation_csv(const std::vector<RowPrediction>& rows);

}  // namespace herdsim

// A user's own failures: a CSV of when what failed, as the empirical law of its class.
//
//   time_h,class
//   0.0,faulty_gpu
//   17.4,faulty_gpu
//
// The header names the columns: `class` and one of `time_s`, `time_h`, `time_d`; others are
// ignored. A row that does not parse, goes back in time or names a class that does not exist is a
// fault with its line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace herdsim {

struct LoggedClass {
  std::string name;
  std::vector<double> gaps_seconds;  // ascending
  double mean_gap_seconds = 0;
  // In the units of the class's row, for a machine of the size the log was taken on.
  double rate_per_hour = 0;
};

struct FailureLog {
  std::vector<LoggedClass>
      classes;  // in order of first appearance; those with two failures or more
  std::vector<std::string> warnings;
};

// `file` is for messages only. `gpus` is the size of the machine the log was taken on.
// Throws: SpecError with every broken row (the first 20) or where no class has two failures.
FailureLog parse_failure_log(std::string_view text, const std::string& file, int64_t gpus);

}  // namespace herdsim

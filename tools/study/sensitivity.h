// Which uncertain inputs decide the answer: each set to both ends of its range, alone.
//
//   const Sensitivity s = sensitivity(variant, {.horizon = {.days = 54, .replicas = 8}});
//   s.bars.front().input.path   // "software.clock_factor": moves most
//
// Replicas draw the same failures in every variant (one stream a class and replica), so that the
// differences are of the inputs and not of the draw.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/metrics/step_result.h"
#include "tools/study/scenario_campaign.h"
#include "tools/study/uncertain_inputs.h"
#include "traces/db/run_database.h"

namespace herdsim {

// The scenario with one more --set; "": as it is.
using ScenarioVariant = std::function<Scenario(const std::string& set)>;

struct SensitivityOptions {
  RunHorizon horizon = {};  // asked: weeks as well as steps
  // Weeks only of inputs that weeks alone feel (reliability, checkpoint, recovery): the others
  // change the step and keep the base's effective training time, which they hardly move. A tenth of
  // the work.
  bool weeks_of_failures_only = false;
  int threads = 1;
};

// What one scenario comes to.
struct Outlook {
  double step_time_s = 0;
  double mfu = 0;
  std::optional<double> effective_training_time;
  double tokens_per_second = 0;  // of the job, failures included where there are weeks
};

struct TornadoBar {
  UncertainInput input;
  // Absent where the end of the range is no scenario; then `problem` says why.
  std::optional<Outlook> low, high;
  std::string problem;
};

struct Sensitivity {
  Outlook base;
  StepResult step;               // of the base
  std::vector<TornadoBar> bars;  // what moves the pace of training most first

  // The largest change of the pace, as a share of the base's.
  double swing(const TornadoBar& bar) const;
};

// Throws: SpecError where the scenario itself is none.
Sensitivity sensitivity(const ScenarioVariant& variant, const SensitivityOptions& options);
// Of these inputs instead of those that the scenario's effective text names.
Sensitivity sensitivity(const ScenarioVariant& variant, std::vector<UncertainInput> inputs,
                        const SensitivityOptions& options);

// The pace of training over the base's if every input moved against it, or for it: roots of sums
// of squares, since the inputs are independent.
struct PaceRange {
  double slowest = 1, fastest = 1;
};
PaceRange pace_range(const Sensitivity& sensitivity);

// For the database: a row an input and figure.
std::vector<TornadoRow> tornado_rows(const Sensitivity& sensitivity);

// At most 80 columns but for long paths.
std::string tornado_table(const Sensitivity& sensitivity);
std::string tornado_json(const Sensitivity& sensitivity);
// A line an input.
std::string tornado_csv(const Sensitivity& sensitivity);

}  // namespace herdsim

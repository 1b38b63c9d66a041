// Why a prediction is off: which uncertain input, alone and inside its stated range, would make it
// what was published.
//
//   const ErrorCauses causes = error_causes({.name = "dgxc-002", .published_step_time_s = 8.75,
//                                            .variant = variant, .inputs = inputs}, 2);
//   causes.causes.front().published_at   // 31.2: of software.host_milliseconds_per_step, 0 to 40
//
// An input that explains the error is no proof that it is the cause: several may, and most errors
// have more than one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/study/sensitivity.h"

namespace herdsim {

struct ErrorQuestion {
  std::string name;         // of the run
  std::string description;  // "Llama3-70B on 64 H100, megatron-te"; may be empty
  double published_step_time_s = 0;
  ScenarioVariant variant;
  std::vector<UncertainInput> inputs;
  std::vector<std::string> assumed;  // what the run leaves open, and what was taken for it
};

struct ErrorCause {
  TornadoBar bar;
  // Share of the gap between the prediction and the published time that the better end closes; 1
  // and more where the published time is inside, 0 where both ends lead away from it.
  double closes = 0;
  std::string towards;  // the value at that end; empty where neither leads there
  // The value at which the prediction is the published time: the nearest to what was assumed. Empty
  // where the range does not hold the published time, and where the input is a choice between
  // words.
  std::optional<double> published_at;

  bool holds_published() const { return closes >= 1; }
};

struct ErrorCauses {
  ErrorQuestion question;
  Sensitivity sensitivity;
  // Those whose range holds the published time first, of these the one that has to move least of
  // its range; then by the share of the gap that they close.
  std::vector<ErrorCause> causes;

  double predicted_s() const { return sensitivity.base.step_time_s; }
  // predicted / published - 1
  double error() const { return predicted_s() / question.published_step_time_s - 1; }
  // The step if every input leaned one way: roots of sums of squares.
  double shortest_s() const;
  double longest_s() const;
};

// Requires: a published time above zero. Throws: SpecError where the scenario itself is none.
// Complexity: two steps an input, and some ten more for each one that explains the error.
ErrorCauses error_causes(ErrorQuestion question, int threads);

// One sentence: what the ranges say of the error.
std::string conclusion(const ErrorCauses& causes);

// At most 80 columns but for long paths.
std::string error_causes_table(const ErrorCauses& causes);
std::string error_causes_json(const ErrorCauses& causes);
// A line an input.
std::string error_causes_csv(const ErrorCauses& causes);

}  // namespace herdsim

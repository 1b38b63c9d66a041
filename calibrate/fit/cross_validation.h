// How good a fit is on what it has not seen: every shape is predicted by a fit that was made
// without it.
//
// Folds are of shapes, not of rows: repetitions of a shape, the same shape in another data set, and
// m beside m + 1 fall into one fold, so that nothing a fit predicts has a twin among what it
// learned from.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "calibrate/profile/measurements.h"

namespace herdsim {

constexpr int kFolds = 5;

// The same on every machine: a hash of the shape.
int fold_of(const GemmMeasurement&);
// Harder: a weight matrix (n, k) is left out with every m, so what is predicted lies between nodes
// nobody measured.
int fold_of_weight(const GemmMeasurement&);
int fold_of(const AttentionMeasurement&);
int fold_of(const StreamMeasurement&);
int fold_of(const CollectiveMeasurement&);

// Of |prediction / measurement - 1|.
struct ErrorSummary {
  std::string group;
  size_t count = 0;
  double median = 0;
  double p90 = 0;
  double bias = 0;  // median of prediction / measurement - 1, with its sign
  // What the fit aims at; zero where nothing was promised.
  double goal_median = 0;
  double goal_p90 = 0;

  bool meets_goal() const {
    return (goal_median == 0 || median <= goal_median) && (goal_p90 == 0 || p90 <= goal_p90);
  }
};

// Collects the errors of named groups; summaries are in alphabetical order.
class ErrorTable {
 public:
  // `goal` is {median, p90}; the first call of a group decides.
  void add(const std::string& group, double predicted, double measured,
           std::array<double, 2> goal = {0, 0});
  std::vector<ErrorSummary> summaries() const;

 private:
  struct Group {
    std::string name;
    std::array<double, 2> goal{};
    std::vector<double> errors;
  };
  std::vector<Group> groups_;
};

}  // namespace herdsim

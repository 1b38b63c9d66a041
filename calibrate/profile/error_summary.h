// How far predictions are from measurements, by group.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace herdsim {

// The value below which a share of the sorted values lies, between two of them in proportion. Requires: at least one.
double quantile(const std::vector<double>& sorted, double share);
// Of values in any order. Requires: at least one.
double median(std::vector<double> values);

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

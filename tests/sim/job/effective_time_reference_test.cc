// The campaign against the exact renewal forms and an independent Monte Carlo, over 28
// published-style points.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/job/simple_campaign.h"

namespace herdsim {
namespace {

struct ReferencePoint {
  std::string name;
  CheckpointProblem problem;
  double first_order = 0, exact = 0, exact_failing = 0, monte_carlo = 0, monte_carlo_error = 0,
         weibull = 0;
};

std::vector<ReferencePoint> reference_points() {
  std::ifstream file(HERDSIM_SOURCE_DIR "/../shared/data/reliability/ettr_reference.csv");
  std::vector<ReferencePoint> points;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::stringstream cells(line);
    std::string cell;
    ReferencePoint point;
    std::getline(cells, point.name, ',');
    std::vector<double> v;
    while (std::getline(cells, cell, ',')) v.push_back(std::stod(cell));
    point.problem = {
        .mtbf = 1 / v.at(0), .restart = v.at(2), .interval = v.at(3), .write = v.at(4)};
    point.first_order = v.at(5);
    point.exact = v.at(6);
    point.exact_failing = v.at(7);
    point.monte_carlo = v.at(8);
    point.monte_carlo_error = v.at(9);
    point.weibull = v.at(10);
    points.push_back(point);
  }
  return points;
}

// Of our own, enough for the spread of long intervals.
double failures_for(const CheckpointProblem& p) { return p.interval >= 1800 ? 60'000 : 15'000; }

TEST(EffectiveTime, closed_forms_reproduce_their_columns) {
  const auto points = reference_points();
  if (points.empty()) GTEST_SKIP() << "the reference points are not part of a clone";
  ASSERT_EQ(points.size(), 28u);
  for (const ReferencePoint& p : points) {
    EXPECT_NEAR(ettr_first_order(p.problem), p.first_order, 1.5e-4) << p.name;
    EXPECT_NEAR(ettr_exact(p.problem), p.exact, 1.5e-4) << p.name;
    EXPECT_NEAR(ettr_exact_failing_restarts(p.problem), p.exact_failing, 1.5e-4) << p.name;
  }
}

// Two-sided 4.5 sigma over 28 points of each kind: below 4e-4 per run together; the seed is fixed.
TEST(EffectiveTime, simulation_meets_the_monte_carlo_of_the_reference) {
  const auto points = reference_points();
  if (points.empty()) GTEST_SKIP() << "the reference points are not part of a clone";
  for (const ReferencePoint& p : points) {
    const Estimate ours = effective_training_time_of(
        run_simple({.problem = p.problem, .failures = failures_for(p.problem)}));
    // The column is rounded to four digits.
    const double sigma = std::hypot(ours.standard_error, p.monte_carlo_error) + 0.5e-4;
    EXPECT_NEAR(ours.mean, p.monte_carlo, 4.5 * sigma)
        << p.name << " interval " << p.problem.interval;
  }
}

// The points of the reference, without its file: 4.5 sigma, and the spread is small enough for that
// to mean something.
std::vector<CheckpointProblem> grid() {
  std::vector<CheckpointProblem> problems;
  for (const double restart : {120.0, 300.0, 600.0, 1000.0}) {
    for (const double interval : {120.0, 300.0, 600.0, 1800.0, 3600.0}) {
      problems.push_back(
          {.mtbf = 11'135.1, .restart = restart, .interval = interval, .write = 0.6});
    }
  }
  problems.push_back({.mtbf = 6646.2, .restart = 300, .interval = 300});
  problems.push_back({.mtbf = 6646.2, .restart = 300, .interval = 3600});
  problems.push_back({.mtbf = 8861.5, .restart = 300, .interval = 2305.8, .write = 300});
  problems.push_back({.mtbf = 8861.5, .restart = 300, .interval = 421, .write = 10});
  problems.push_back({.mtbf = 57'600, .restart = 300, .interval = 5878.8, .write = 300});
  problems.push_back({.mtbf = 2953.8, .restart = 120, .interval = 120});
  problems.push_back({.mtbf = 1080, .restart = 600, .interval = 60});
  problems.push_back({.mtbf = 1080, .restart = 180, .interval = 60});
  return problems;
}

TEST(EffectiveTime, simulation_meets_the_exact_form_where_failures_rest_during_restarts) {
  for (const CheckpointProblem& p : grid()) {
    const Estimate ours = effective_training_time_of(
        run_simple({.problem = p, .failures = failures_for(p), .seed = 2}));
    EXPECT_NEAR(ours.mean, ettr_exact(p), 4.5 * ours.standard_error + 1e-4)
        << p.restart << " " << p.interval;
    EXPECT_LT(ours.standard_error / ours.mean, 0.005) << p.restart << " " << p.interval;
  }
}

TEST(EffectiveTime, simulation_meets_the_exact_form_where_restarts_fail_too) {
  for (const CheckpointProblem& p : grid()) {
    const Estimate ours = effective_training_time_of(run_simple(
        {.problem = p, .restarts_can_fail = true, .failures = failures_for(p), .seed = 3}));
    EXPECT_NEAR(ours.mean, ettr_exact_failing_restarts(p), 4.5 * ours.standard_error + 1e-4)
        << p.restart << " " << p.interval;
  }
}

TEST(EffectiveTime, clustered_failures_of_equal_mean_hurt_less_where_intervals_are_long) {
  const auto points = reference_points();
  if (points.empty()) GTEST_SKIP() << "the reference points are not part of a clone";
  for (const ReferencePoint& p : points) {
    const Estimate ours =
        effective_training_time_of(run_simple({.problem = p.problem,
                                               .law = ArrivalShape::kWeibull,
                                               .failures = failures_for(p.problem),
                                               .seed = 4}));
    // The reference has no error for this column; a Weibull's is 1.35 times that of the
    // exponential.
    const double sigma = std::hypot(ours.standard_error, 1.35 * p.monte_carlo_error) + 0.5e-4;
    EXPECT_NEAR(ours.mean, p.weibull, 4.5 * sigma) << p.name << " interval " << p.problem.interval;
    if (p.problem.interval >= 1800) EXPECT_GT(ours.mean, ettr_exact(p.problem)) << p.name;
  }
}

TEST(EffectiveTime, asynchronous_saves_cost_their_delay_on_top) {
  // Form 4: D/2 becomes D/2 + P. First order, so within a per cent of the loss of P.
  const CheckpointProblem with{
      .mtbf = 11'135, .restart = 300, .interval = 600, .write = 0.5, .persist = 300};
  CheckpointProblem without = with;
  without.persist = 0;
  const double gap = ettr_first_order(without) - ettr_first_order(with);
  const Estimate a = effective_training_time_of(run_simple({.problem = with}));
  const Estimate b = effective_training_time_of(run_simple({.problem = without}));
  EXPECT_NEAR(b.mean - a.mean, gap, 0.12 * gap);
}

TEST(EffectiveTime, without_lost_work_only_the_mean_of_the_law_matters) {
  // Renewal reward: 1 / (1 + lambda u) for any law; 4.5 sigma.
  for (const ArrivalShape law : {ArrivalShape::kExponential, ArrivalShape::kWeibull}) {
    const CheckpointProblem p{.mtbf = 4000, .restart = 900, .interval = 0.1};
    const Estimate ours =
        effective_training_time_of(run_simple({.problem = p, .law = law, .failures = 10'000}));
    EXPECT_NEAR(ours.mean, ettr_renewal(p), 4.5 * ours.standard_error + 1e-4);
  }
}

}  // namespace
}  // namespace herdsim

#include "tools/report/step_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/golden/golden_file.h"
#include "tests/tools/report/synthetic_step.h"
#include "tools/report/step_efficiency.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// The large step with a slower network: more exposed communication and bubble, the same compute.
StepResult slower_step() {
  StepResult r = large_step();
  r.scenario = "llama3-405b-16384 with half the uplinks";
  r.step_time += milliseconds(300);
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kExposedDp)] += r.gpus * 250'000'000;
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kBubble)] += r.gpus * 50'000'000;
  return r;
}

TEST(Difference, terms_sum_to_the_difference_of_the_step_times) {
  std::mt19937_64 engine(5);
  for (int round = 0; round < 200; ++round) {
    StepResult pair[2] = {large_step(), large_step()};
    for (StepResult& r : pair) {
      r.gpus = 1 + static_cast<int64_t>(engine() % 20'000);
      r.step_time = nanoseconds(1 + static_cast<int64_t>(engine() % 30'000'000'000));
      int64_t left = r.gpus * r.step_time.nanoseconds();
      for (size_t i = 0; i + 1 < kTimeTerms; ++i) {
        r.account_rank_nanoseconds[i] =
            static_cast<int64_t>(engine() % static_cast<uint64_t>(left / 2 + 1));
        left -= r.account_rank_nanoseconds[i];
      }
      r.account_rank_nanoseconds[kTimeTerms - 1] = left;
    }
    double sum = 0;
    for (const DifferenceTerm& term : difference_terms(pair[0], pair[1]))
      sum += term.difference_s();
    const double whole = pair[1].step_time.seconds() - pair[0].step_time.seconds();
    EXPECT_LT(std::abs(sum - whole), 0.5e-9) << "round " << round;
  }
}

TEST(Difference, the_largest_term_comes_first_and_equal_steps_differ_in_none) {
  const auto terms = difference_terms(large_step(), slower_step());
  ASSERT_EQ(terms.size(), kTimeTerms);
  EXPECT_EQ(terms[0].term, "exposed_dp");
  EXPECT_NEAR(terms[0].difference_s(), 0.25, 1e-9);
  EXPECT_EQ(terms[1].term, "bubble");
  for (const DifferenceTerm& term : difference_terms(large_step(), large_step())) {
    EXPECT_EQ(term.difference_s(), 0) << term.term;
  }
}

TEST(Difference, reads_as_the_golden_files) {
  EXPECT_TRUE(
      matches_golden("difference_table.txt", difference_table(large_step(), slower_step())));
  EXPECT_TRUE(matches_golden("difference.json", difference_json(large_step(), slower_step())));
}

TEST(Difference, steps_that_answer_different_questions_are_marked) {
  EXPECT_THAT(difference_table(large_step(), slower_step()), Not(HasSubstr("note:")));
  const std::string table = difference_table(large_step(), implausible_step());
  EXPECT_THAT(table, HasSubstr("16,384 GPUs"));
  EXPECT_THAT(table, HasSubstr("4,096"));
}

TEST(Difference, json_of_unknown_figures_is_null) {
  StepResult bare = implausible_step();
  bare.memory.clear();
  bare.peak = FlopRate();
  const Json parsed = Json::parse(difference_json(large_step(), bare));
  EXPECT_TRUE(parsed["mfu"].is_null());
  EXPECT_TRUE(parsed["peak_memory_bytes"].is_null());
  EXPECT_EQ(parsed["terms_s"].size(), kTimeTerms);
}

TEST(Efficiency, terms_sum_to_the_gpu_time_of_a_token_and_the_points_to_the_mfu) {
  StepResult small = slower_step();
  small.gpus /= 4;  // the account keeps its rank-nanoseconds, so a quarter of the ranks takes four
                    // times as long
  small.step_time = small.step_time * 4;
  double difference = 0, points = 0;
  for (const EfficiencyTerm& term : efficiency_terms(large_step(), small)) {
    difference += term.b - term.a;
    points += term.mfu_points;
  }
  EXPECT_NEAR(difference, 16'384 * 0.3 / 16.777216, 1e-6);
  EXPECT_NEAR(points, 100 * (small.mfu_causal() - large_step().mfu_causal()), 1e-9);
  EXPECT_EQ(efficiency_terms(large_step(), small)[0].term, "exposed_dp");
}

TEST(Efficiency, reads_as_the_golden_files) {
  EXPECT_TRUE(
      matches_golden("efficiency_table.txt", efficiency_table(large_step(), slower_step())));
  EXPECT_TRUE(matches_golden("efficiency.json", efficiency_json(large_step(), slower_step())));
}

TEST(Efficiency, equal_steps_are_said_to_be_equal) {
  const std::string table = efficiency_table(large_step(), large_step());
  EXPECT_THAT(table, HasSubstr("the same GPU time"));
  EXPECT_THAT(table, Not(HasSubstr("nan")));
}

TEST(Comparison, reads_as_the_golden_file) {
  const std::vector<StepResult> steps = {large_step(), slower_step(), implausible_step()};
  EXPECT_TRUE(matches_golden("comparison_table.txt", comparison_table(steps)));
}

TEST(Comparison, many_scenarios_fit_a_terminal) {
  std::vector<StepResult> steps(30, large_step());
  steps[7].gpus = 1'000'000;
  std::istringstream lines(comparison_table(steps));
  std::string line, all;
  for (; std::getline(lines, line); all += line + "\n") {
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << "trailing space: " << line;
  }
  EXPECT_THAT(all, HasSubstr("\nAD "));
}

// Every column of terms sums to its last line.
TEST(Efficiency, of_many_steps_each_differs_from_the_first_by_terms_that_sum) {
  const std::vector<StepResult> steps = {large_step(), slower_step(), large_step()};
  std::istringstream lines(efficiency_matrix(steps));
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr("C - A"));
  double sums[3] = {};
  while (std::getline(lines, line)) {
    double values[3];
    std::istringstream last(line.substr(line.size() - 30));
    std::vector<std::string> words;
    for (std::string word; last >> word;) words.push_back(word);
    ASSERT_GE(words.size(), 3u) << line;
    for (size_t i = 0; i < 3; ++i) values[i] = std::stod(words[words.size() - 3 + i]);
    if (line.starts_with("sum")) {
      for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(sums[i], values[i], 0.05) << i;
      EXPECT_GT(values[1], 0);
      EXPECT_EQ(values[2], 0);
      return;
    }
    for (size_t i = 0; i < 3; ++i) sums[i] += values[i];
  }
  FAIL() << "no sum";
}

}  // namespace
}  // namespace herdsim

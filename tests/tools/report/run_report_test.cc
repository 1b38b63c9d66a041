#include "tools/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/golden/golden_file.h"

namespace herdsim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Two replicas of ten days in which everything happens.
RunResult synthetic_run() {
  RunResult run;
  run.scenario = "synthetic";
  run.gpus = 1024;
  run.class_names = {"gpu_thermal_interface_sensor", "planned_maintenance"};
  run.class_planned = {false, true};
  run.nominal_step = seconds(5);
  run.tokens_per_step = 4'000'000;
  run.model_flops_per_step = Flops(1e18);
  run.peak = teraflops(989);
  run.expected_rate_per_hour = 0.25;
  for (int64_t i = 0; i < 2; ++i) {
    ReplicaResult replica;
    replica.horizon = hours(240);
    replica.steps = 160'000 + 1000 * i;
    replica.by_class = {60 + 4 * i, 10};
    replica.planned = 10;
    replica.account[static_cast<size_t>(RunTerm::kTraining)] = seconds(5) * replica.steps;
    replica.account[static_cast<size_t>(RunTerm::kLostWork)] =
        hours(240) - seconds(5) * replica.steps;
    run.replicas.push_back(replica);
  }
  run.contributions = {{.name = "gpu_thermal_interface_sensor",
                        .if_changed = 0.96,
                        .gain = 0.0287,
                        .gain_stderr = 0.0011,
                        .replicas = 2},
                       {.name = "diurnal_clock",
                        .if_changed = 0.934,
                        .gain = 0.002,
                        .gain_stderr = 0,
                        .replicas = 2}};
  run.without_stragglers = {.name = "slow_hosts, bad_worker",
                            .if_changed = 0.95,
                            .gain = 0.0212,
                            .gain_stderr = 0.001,
                            .replicas = 2};
  run.replicas.front().undetected_corruptions = 3;
  run.checkpoint = CheckpointFigures{.policy = "async",
                                     .rule = "fixed",
                                     .bytes = gigabytes(500),
                                     .interval_steps = 60,
                                     .interval_s = 300,
                                     .block_s = 0.5,
                                     .save_s = 12,
                                     .load_s = 30,
                                     .restart_s = 400,
                                     .young_s = 120,
                                     .daly_s = 119.5,
                                     .young_with_restart_s = 121.6,
                                     .period_including_write_s = 122.1,
                                     .effective_first_order = 0.95};
  run.warnings = {"checkpoint.interval_s: something is unusual"};
  return run;
}

TEST(RunReport, table_is_as_accepted) {
  EXPECT_TRUE(matches_golden("run_table.txt", run_table(synthetic_run())));
}

TEST(RunReport, no_line_of_the_table_is_wider_than_a_terminal) {
  std::istringstream lines(run_table(synthetic_run()));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(RunReport, json_has_the_documented_keys_and_sums) {
  const json run = json::parse(run_json(synthetic_run()));
  for (const char* key : {"scenario",
                          "gpus",
                          "horizon_s",
                          "replicas",
                          "effective_training_time",
                          "effective_training_time_p05",
                          "effective_training_time_p95",
                          "interruptions",
                          "mean_time_between_interruptions_s",
                          "tokens",
                          "steps",
                          "mfu",
                          "tokens_per_second",
                          "time_account_s",
                          "fingerprint",
                          "wall_s",
                          "warnings",
                          "checkpoint",
                          "days_to_tokens",
                          "contributions",
                          "gpu_energy_mwh",
                          "expected_mean_time_between_failures_s"}) {
    EXPECT_TRUE(run.contains(key)) << key;
  }
  double sum = 0;
  for (const auto& term : run["time_account_s"]) sum += term.get<double>();
  EXPECT_NEAR(sum, run["horizon_s"].get<double>(), 1e-6);
  EXPECT_EQ(run["expected_mean_time_between_failures_s"], 14'400);
  EXPECT_EQ(run["checkpoint"]["young_interval_s"], 120);
  const json& first = run["contributions"][0];
  EXPECT_NEAR(first["gain_high"].get<double>() - first["gain_low"].get<double>(), 2 * 1.96 * 0.0011,
              1e-12);
  // A trillion tokens: 250,000 steps at 5 s without failures.
  EXPECT_NEAR(run["days_to_tokens"]["without_failures"].get<double>(), 250'000 * 5 / 86'400.0,
              1e-9);
  EXPECT_GT(run["days_to_tokens"]["p95"].get<double>(), run["days_to_tokens"]["p05"].get<double>());
}

TEST(RunReport, a_run_that_trains_nothing_never_reaches_its_tokens) {
  RunResult run = synthetic_run();
  run.replicas.back().steps = 0;
  EXPECT_THAT(run_table(run), HasSubstr("to never in single runs)"));
  for (ReplicaResult& replica : run.replicas) replica.steps = 0;
  EXPECT_THAT(run_table(run), testing::Not(testing::ContainsRegex("[^a-z](inf|nan)[^a-z]")));
}

TEST(RunReport, a_run_in_which_nothing_can_fail_has_no_rows_for_failures) {
  RunResult run = synthetic_run();
  run.class_names.clear();
  run.class_planned.clear();
  run.contributions.clear();
  run.checkpoint.reset();
  run.expected_rate_per_hour = 0;
  for (ReplicaResult& replica : run.replicas) replica.by_class.clear();
  EXPECT_THAT(run_table(run), testing::Not(HasSubstr("costs most")));
  const json parsed = json::parse(run_json(run));
  EXPECT_TRUE(parsed["checkpoint"].is_null());
  EXPECT_TRUE(parsed["expected_mean_time_between_failures_s"].is_null());
}

}  // namespace
}  // namespace herdsim

// Weeks of training on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/herdsim/run_command.h"

namespace herdsim {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A job of 8 GPUs whose step simulates in a millisecond, and which fails often.
std::vector<std::string> small_run(std::vector<std::string> more) {
  std::vector<std::string> line = {"run",
                                   "llama3-8b-1024",
                                   "--quiet",
                                   "--days",
                                   "10",
                                   "--replicas",
                                   "4",
                                   "--set",
                                   "gpus=8",
                                   "--set",
                                   "parallel.dp=",
                                   "--set",
                                   "model.layers=4",
                                   "--set",
                                   "training.sequence_length=1024",
                                   "--set",
                                   "training.global_batch=16",
                                   "--set",
                                   "recovery.spares=",
                                   "--set",
                                   "reliability.job_mtbf_h=5"};
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

json run_json_of(const std::vector<std::string>& more) {
  std::vector<std::string> line = small_run(more);
  line.insert(line.end(), {"--format", "json"});
  const CommandOutput run = run_command(line);
  EXPECT_EQ(run.status, kExitDone) << run.err;
  EXPECT_EQ(run.err, "");
  return json::parse(run.out);
}

int64_t count_of(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  int64_t count = -1;
  sqlite3_exec(
      database, sql.c_str(),
      [](void* out, int, char** values, char**) {
        *static_cast<int64_t*>(out) = values[0] == nullptr ? -1 : std::stoll(values[0]);
        return 0;
      },
      &count, nullptr);
  sqlite3_close(database);
  return count;
}

TEST(RunCommand, the_account_sums_and_the_ranking_names_what_fails) {
  const json run = run_json_of({});
  double sum = 0;
  for (const auto& term : run["time_account_s"]) sum += term.get<double>();
  EXPECT_NEAR(sum, 864'000, 1e-3);
  EXPECT_NEAR(run["expected_mean_time_between_failures_s"].get<double>(), 5 * 3600, 1e-6);
  // 48 failures in ten days, four replicas: 5 sigma.
  EXPECT_NEAR(run["interruptions"]["unexpected"].get<double>(), 48, 5 * std::sqrt(48.0 / 4) + 1);
  ASSERT_EQ(run["contributions"].size(), 20U);
  for (size_t i = 1; i < 20; ++i) {
    EXPECT_LE(run["contributions"][i]["gain"].get<double>(),
              run["contributions"][i - 1]["gain"].get<double>());
  }
  EXPECT_LE(run["effective_training_time_p05"], run["effective_training_time_p95"]);
}

TEST(RunCommand, says_what_removing_the_stragglers_would_give) {
  EXPECT_TRUE(run_json_of({})["without_stragglers"].is_null());
  const std::vector<std::string> slow = {
      "--set", "reliability.slow.fail_slow_compute.rate_per_hour=0.1", "--set",
      "reliability.slow.fail_slow_compute.slowdown=0.5"};
  const json run = run_json_of(slow);
  const json& without = run["without_stragglers"];
  EXPECT_EQ(without["name"], "fail_slow_compute");
  EXPECT_GT(without["gain"].get<double>(), 0);
  EXPECT_NEAR(without["effective_training_time"].get<double>() -
                  run["effective_training_time"].get<double>(),
              without["gain"].get<double>(), 1e-12);
  // Slow GPUs at other clocks than the nominal one are composed: within 0.5 % of a step.
  std::vector<std::string> whole = slow;
  whole.emplace_back("--no-fold");
  EXPECT_NEAR(run_json_of(whole)["effective_training_time"].get<double>(),
              run["effective_training_time"].get<double>(),
              0.005 * run["effective_training_time"].get<double>());
}

TEST(RunCommand, folds_weeks_exactly_where_nothing_is_slow) {
  EXPECT_EQ(run_json_of({"--no-fold"})["fingerprint"], run_json_of({})["fingerprint"]);
}

TEST(RunCommand, the_answer_does_not_depend_on_threads_or_on_what_is_written) {
  const std::string folder = testing::TempDir();
  const std::string trace = folder + "herdsim_run.pftrace", db = folder + "herdsim_run.db";
  std::filesystem::remove(db);
  const std::string one = run_json_of({"--threads", "1"})["fingerprint"];
  EXPECT_EQ(run_json_of({"--threads", "5"})["fingerprint"], one);
  EXPECT_EQ(run_json_of({"--trace", trace, "--db", db})["fingerprint"], one);
  EXPECT_GT(std::filesystem::file_size(trace), 1000U);
  EXPECT_EQ(count_of(db, "SELECT count(*) FROM runs WHERE kind = 'run'"), 1);
  EXPECT_GT(count_of(db, "SELECT count(*) FROM failures"), 20);
  // What stopped the job says what brought it back; a node is named.
  EXPECT_EQ(count_of(db, "SELECT count(*) FROM failures WHERE component NOT LIKE 'host %'"), 0);
  EXPECT_GT(count_of(db, "SELECT count(*) FROM failures WHERE recovered_by LIKE '%; remote store'"),
            10);
  EXPECT_EQ(count_of(db, "SELECT round(sum(seconds)) FROM v_time_account"), 864'000);
  std::filesystem::remove(db);
}

TEST(RunCommand, bad_horizons_and_files_exit_with_2) {
  for (const auto& [more, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--days", "0"}, "--days"},
           {{"--days", "-3"}, "--days"},
           {{"--replicas", "0"}, "--replicas"},
           {{"--tokens", "-1"}, "--tokens"},
           {{"--set", "reliability.rate_scale=-1"}, "reliability.rate_scale"},
           {{"--set", "reliability.rate_scale=1000000"}, "failures in one replica"},
           {{"--trace", "/nowhere/x.pftrace"}, "/nowhere/x.pftrace"},
           {{"--db", "/nowhere/x.db"}, "/nowhere/x.db"}}) {
    std::vector<std::string> line = {
        "run", "llama3-405b-16384", "--quiet", "--replicas", "1", "--days", "1"};
    // The last of an option that is given twice would be an error of its own.
    if (more.front() == "--days") line = {"run", "llama3-405b-16384", "--quiet"};
    if (more.front() == "--replicas") line = {"run", "llama3-405b-16384", "--quiet"};
    line.insert(line.end(), more.begin(), more.end());
    const CommandOutput run = run_command(line);
    EXPECT_EQ(run.status, kExitBadInput) << says;
    EXPECT_THAT(run.err, HasSubstr(says));
    EXPECT_EQ(run.out, "") << says;
  }
  // Neither the scenario nor the command line says for how long.
  const CommandOutput none = run_command({"run", "llama3-8b-1024", "--set", "run.days=0"});
  EXPECT_EQ(none.status, kExitBadInput);
  EXPECT_THAT(none.err, HasSubstr("the horizon is zero"));
}

TEST(RatesCommand, answers_in_the_words_of_the_question) {
  const CommandOutput run = run_command(
      {"rates", "llama3-405b-16384", "--gpus", "1024,16384,100000,1000000", "--set",
       "reliability.gpu_mtbf_h=50000", "--step-s", "6.4", "--format", "json", "--quiet"});
  ASSERT_EQ(run.status, kExitDone) << run.err;
  const json rates = json::parse(run.out);
  const std::vector<double> expected = {48.8, 3.05, 0.5, 0.05};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(rates["rows"][i]["mtbf_h"].get<double>() / expected[i], 1, 0.01);
}

TEST(Help, failures_and_policies_come_from_the_tables) {
  const std::string failures = run_command({"help", "failures"}).out;
  EXPECT_THAT(failures, HasSubstr("silent_data_corruption"));
  EXPECT_THAT(failures, HasSubstr("6.97e-06 an hour and GPU"));
  const std::string policies = run_command({"help", "policies"}).out;
  EXPECT_THAT(policies, HasSubstr("recovery warm-standby"));
  EXPECT_THAT(policies, HasSubstr("ByteRobust"));
}

}  // namespace
}  // namespace herdsim

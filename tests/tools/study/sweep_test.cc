#include "tools/study/sweep.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.h"
#include "tests/tools/study/small_scenario.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

class Sweep : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / (std::string("herdsim_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Tensor parallel 1, 2, 3 (which divides nothing), 4 by two micro-batches.
  SweepRequest request(const std::string& database, int threads = 1) const {
    SweepRequest request;
    request.scenario = kSmallScenario;
    request.sets = small_sets();
    request.axes = {"parallel.tp=1,2,3,4", "parallel.micro_batch=1,2"};
    request.database = path(database);
    request.threads = threads;
    return request;
  }

  std::filesystem::path folder_;
};

// Each row by its point; nothing of how it came about.
std::map<std::string, std::string> rows_of(const SweepResult& result) {
  std::map<std::string, std::string> rows;
  for (const SweepRow& row : result.rows) {
    std::ostringstream text;
    text.precision(17);
    text << row.stored.fingerprint << '|' << row.stored.skipped_because;
    for (const Metric& m : row.stored.figures) text << '|' << m.name << '=' << m.value << m.unit;
    rows[row.stored.point] = text.str();
  }
  return rows;
}

TEST_F(Sweep, a_point_is_the_step_of_its_scenario) {
  const SweepResult result = run_sweep(request("a.db"));
  ASSERT_EQ(result.rows.size(), 8u);
  for (const SweepRow& row : result.rows) {
    std::vector<std::string> sets = small_sets();
    sets.push_back("parallel.tp=" + row.values[0]);
    sets.push_back("parallel.micro_batch=" + row.values[1]);
    if (row.values[0] == "3") {
      EXPECT_THAT(row.stored.skipped_because, HasSubstr("3 does not divide")) << row.stored.point;
      EXPECT_TRUE(row.stored.figures.empty());
    } else {
      const StepResult step = simulate_step(load_scenario(kSmallScenario, sets), {}).result;
      EXPECT_EQ(row.stored.fingerprint, step.fingerprint()) << row.stored.point;
    }
  }
  EXPECT_EQ(result.skipped, 2);
  EXPECT_EQ(result.computed, 8);
}

TEST_F(Sweep, threads_change_no_row) {
  const auto one = rows_of(run_sweep(request("one.db", 1)));
  const auto three = rows_of(run_sweep(request("three.db", 3)));
  EXPECT_EQ(one, three);
}

TEST_F(Sweep, runs_of_weeks_are_the_same_for_any_number_of_threads) {
  const auto rows = [&](const std::string& name, int threads) {
    SweepRequest r = request(name, threads);
    r.axes = {"seed=1:4:1", "reliability.rate_scale=1,100"};
    r.horizon = {.days = 5, .tokens = 0, .replicas = 2};
    return rows_of(run_sweep(r));
  };
  const auto one = rows("one.db", 1);
  EXPECT_EQ(one, rows("three.db", 3));
  EXPECT_THAT(one.at("seed=1 reliability.rate_scale=1"), HasSubstr("run.effective_training_time"));
  EXPECT_NE(one.at("seed=1 reliability.rate_scale=100"),
            one.at("seed=2 reliability.rate_scale=100"));
}

TEST_F(Sweep, a_killed_sweep_goes_on_and_repeats_nothing) {
  const SweepResult whole = run_sweep(request("whole.db"));
  for (const int64_t at : {0, 1, 5, 7}) {
    const std::string name = "killed_" + std::to_string(at) + ".db";
    SweepRequest killed = request(name);
    struct Kill {};
    // The writer dies between two points; what it wrote is whole.
    killed.progress = [&](const SweepProgress& p) {
      if (p.done == at) throw Kill();
    };
    EXPECT_THROW(run_sweep(killed), Kill);
    const SweepResult rest = run_sweep(request(name));
    EXPECT_EQ(rest.found, at);
    EXPECT_EQ(rest.computed, 8 - at);
    EXPECT_EQ(rows_of(rest), rows_of(whole));
    EXPECT_EQ(run_sweep(request(name)).computed, 0);
  }
}

TEST_F(Sweep, a_longer_axis_finds_the_points_of_the_shorter) {
  SweepRequest r = request("a.db");
  r.axes[0] = "parallel.tp=1,2";
  run_sweep(r);
  const SweepResult longer = run_sweep(request("a.db"));
  EXPECT_EQ(longer.found, 4);
  EXPECT_EQ(longer.computed, 4);
}

TEST_F(Sweep, a_database_of_another_scenario_is_refused_and_kept) {
  run_sweep(request("a.db"));
  SweepRequest other = request("a.db");
  other.sets.push_back("model.hidden=2048");
  other.sets.push_back("model.head_dim=");
  try {
    run_sweep(other);
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds a sweep of llama3-8b-1024 with other fields"));
  }
  other = request("a.db");
  other.scenario = "llama3-70b-8192";
  other.sets.clear();
  EXPECT_THROW(run_sweep(other), SpecError);
  EXPECT_EQ(run_sweep(request("a.db")).found, 8);
}

TEST_F(Sweep, what_can_never_be_read_stops_before_a_database_exists) {
  for (const std::string axis : {"parallel.tpp=1,2", "parallel.tp=1,two", "parallel.tp=",
                                 "parallel.tp=8:1:1", "nothing=1", "parallel.shard=ZERO1,ZERO9"}) {
    SweepRequest bad = request("bad.db");
    bad.axes = {axis};
    EXPECT_THROW(run_sweep(bad), SpecError) << axis;
    EXPECT_FALSE(std::filesystem::exists(bad.database)) << axis;
  }
  SweepRequest bad = request("bad.db");
  bad.scenario = "llama3-405";
  EXPECT_THROW(run_sweep(bad), SpecError);
  bad = request("bad.db");
  bad.horizon.replicas = 3;
  EXPECT_THROW(run_sweep(bad), SpecError);
}

TEST_F(Sweep, a_database_that_cannot_be_written_is_an_input_error) {
  EXPECT_THROW(run_sweep(request("no_such_folder/a.db")), SpecError);
  std::ofstream(path("text.db")) << "this is not a database, and it is longer than a header of one";
  EXPECT_THROW(run_sweep(request("text.db")), SpecError);
}

TEST_F(Sweep, reports_have_every_point_in_the_order_of_the_axes) {
  const SweepResult result = run_sweep(request("a.db", 3));
  const auto json = nlohmann::json::parse(sweep_json(result));
  const std::string csv = sweep_csv(result);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 9);
  ASSERT_EQ(json["points"].size(), 8u);
  size_t i = 0;
  for (const int tp : {1, 2, 3, 4}) {
    for (const int micro_batch : {1, 2}) {
      const auto& point = json["points"][i++];
      EXPECT_EQ(point["values"]["parallel.tp"], tp);
      EXPECT_EQ(point["values"]["parallel.micro_batch"], micro_batch);
      EXPECT_EQ(point.contains("skipped_because"), tp == 3);
      EXPECT_EQ(point.contains("mfu"), tp != 3);
    }
  }
  EXPECT_THAT(sweep_table(result), HasSubstr("skipped: "));
}

}  // namespace
}  // namespace herdsim

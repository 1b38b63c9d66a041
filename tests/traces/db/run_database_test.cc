#include "traces/db/run_database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>

#include "sim/base/error.h"
#include "traces/db/report_tables.h"

namespace herdsim {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Row = std::vector<std::string>;

// What the sqlite3 shell would print, with its own connection.
std::vector<Row> query(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
  std::vector<Row> rows;
  char* error = nullptr;
  sqlite3_exec(
      database, sql.c_str(),
      [](void* out, int columns, char** values, char**) {
        Row row;
        for (int i = 0; i < columns; ++i)
          row.emplace_back(values[i] == nullptr ? "NULL" : values[i]);
        static_cast<std::vector<Row>*>(out)->push_back(std::move(row));
        return 0;
      },
      &rows, &error);
  EXPECT_EQ(error, nullptr) << sql << ": " << error;
  sqlite3_free(error);
  sqlite3_close(database);
  return rows;
}

std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

StepResult step(const std::string& scenario = "tiny") {
  StepResult r;
  r.scenario = scenario;
  r.gpus = 4;
  r.step_time = milliseconds(2'500);
  r.tokens_per_step = 65'536;
  r.model_flops_causal = Flops(4e15);
  r.model_flops_full = Flops(5e15);
  r.peak = teraflops(1'000);
  r.dtype = "bf16";
  for (size_t i = 0; i < kTimeTerms; ++i) r.account_rank_nanoseconds[i] = 900'000'000;
  r.account_rank_nanoseconds[0] += 100'000'000;
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kLoader)] = 0;
  r.memory = {{.stage = 0,
               .peak = gigabytes(50),
               .moment = "backward of micro-batch 3",
               .weights = gigabytes(20)},
              {.stage = 1, .peak = gigabytes(40), .moment = "optimizer"}};
  r.memory_capacity = gigabytes(80);
  r.simulated_ranks = 2;
  r.events = 1'234;
  r.wall_seconds = 0.25;
  r.warnings = {"first", "second"};
  return r;
}

RunRecord record() {
  return {.command = "herdsim step tiny",
          .effective_spec = "name: \"tiny\"\n",
          .seed = 7,
          .version = "0.1.0",
          .profile = "h100",
          .profile_provenance = "measured: harness, 2025-01"};
}

class RunDatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              (std::string("herdsim_db_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = folder_ / "runs.db";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Opening is refused with the path and the reason, and nothing in the folder changes.
  void expect_refused(const std::string& path, const std::string& reason) {
    std::map<std::string, std::string> before, after;
    for (const auto& entry : fs::directory_iterator(folder_))
      before[entry.path()] = bytes_of(entry.path());
    try {
      RunDatabase database(path);
      ADD_FAILURE() << path << " was opened";
    } catch (const SpecError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(path), HasSubstr(reason)));
    }
    for (const auto& entry : fs::directory_iterator(folder_))
      after[entry.path()] = bytes_of(entry.path());
    EXPECT_EQ(before, after) << reason;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(RunDatabaseTest, a_step_is_read_back_with_sql) {
  EXPECT_EQ(RunDatabase(path_).add_step(step(), record()), 1);
  EXPECT_THAT(query(path_,
                    "SELECT scenario, gpus, command, effective_spec, seed, version, profile, "
                    "profile_provenance,"
                    " kind, recorded_at, sweep_id FROM runs"),
              ElementsAre(Row{"tiny", "4", "herdsim step tiny", "name: \"tiny\"\n", "7", "0.1.0",
                              "h100", "measured: harness, 2025-01", "step", "NULL", "NULL"}));
  EXPECT_THAT(
      query(path_,
            "SELECT step_time_s, tokens_per_step, model_tflops_per_gpu, mfu, mfu_full_attention,"
            " peak_tflops, dtype, peak_memory_bytes, peak_memory_stage, peak_memory_moment,"
            " memory_capacity_bytes, fits, simulated_ranks, events, wall_s, warnings FROM runs"),
      ElementsAre(Row{"2.5", "65536", "400.0", "0.4", "0.5", "1000.0", "bf16", "50000000000", "0",
                      "backward of micro-batch 3", "80000000000", "1", "2", "1234", "0.25",
                      "first\nsecond"}));
  EXPECT_THAT(query(path_, "SELECT result_fingerprint FROM runs"),
              ElementsAre(Row{step().fingerprint()}));
  EXPECT_THAT(query(path_, "SELECT value, unit FROM metrics WHERE name = 'memory.stage_0.weights'"),
              ElementsAre(Row{"20000000000.0", "bytes"}));
}

TEST_F(RunDatabaseTest, the_views_answer_what_people_ask_first) {
  RunDatabase database(path_);
  database.add_step(step("a"), record());
  database.add_step(step("b"), record());
  EXPECT_THAT(query(path_, "SELECT scenario, mfu_percent, has_warnings FROM v_summary"),
              ElementsAre(Row{"b", "40.0", "1"}, Row{"a", "40.0", "1"}));
  EXPECT_THAT(
      query(path_, "SELECT term, seconds, percent FROM v_time_account WHERE run_id = 2 LIMIT 1"),
      ElementsAre(Row{"compute", "0.25", "10.0"}));
  EXPECT_THAT(query(path_,
                    "SELECT run_id, count(*), round(sum(seconds), 9), round(sum(percent), 9)"
                    " FROM v_time_account GROUP BY run_id"),
              ElementsAre(Row{"1", "12", "2.5", "100.0"}, Row{"2", "12", "2.5", "100.0"}));
}

TEST_F(RunDatabaseTest, a_trace_is_read_back_with_nulls_for_what_a_span_lacks) {
  StepTrace trace;
  trace.names = {"forward mlp", "all_gather ring"};
  trace.ranks = {{.rank = RankId(3)}};
  trace.spans = {{.rank = RankId(3),
                  .begin = Instant::from_nanoseconds(5),
                  .end = Instant::from_nanoseconds(25),
                  .micro_batch = 2,
                  .chunk = 1,
                  .flops = Flops(1e9)},
                 {.rank = RankId(3),
                  .stream = Stream::kDp,
                  .begin = Instant::from_nanoseconds(30),
                  .end = Instant::from_nanoseconds(31),
                  .name = 1,
                  .bytes = bytes(4'096),
                  .flow = 9}};
  RunDatabase database(path_);
  const int64_t run = database.add_step(step(), record());
  database.add_trace(run, trace);
  EXPECT_THAT(query(path_, "SELECT * FROM spans ORDER BY begin_ns"),
              ElementsAre(Row{"1", "3", "compute", "5", "20", "forward mlp", "2", "1", "NULL",
                              "1000000000.0", "NULL"},
                          Row{"1", "3", "dp", "30", "1", "all_gather ring", "NULL", "NULL", "4096",
                              "NULL", "9"}));
  EXPECT_THROW(database.add_trace(run + 1, trace), SpecError) << "a run that is not there";
  EXPECT_THAT(query(path_, "SELECT count(*) FROM spans"), ElementsAre(Row{"2"}));
}

TEST_F(RunDatabaseTest, failures_of_weeks_are_read_back_and_the_account_is_that_of_the_run) {
  RunDatabase database(path_);
  RunRecord weeks = record();
  weeks.kind = "run";
  weeks.fingerprint = "f00d";
  const std::vector<Metric> metrics = {{"run.time_account.training", 900, "s"},
                                       {"run.time_account.lost_work", 100, "s"}};
  const int64_t run = database.add_step(step(), weeks, metrics);
  const std::vector<FailureRow> failures = {
      {.at_s = 12.5,
       .failure_class = "nic",
       .component = "host 3",
       .down_s = 600,
       .lost_work_s = 20,
       .recovered_by = "spare host; remote store"},
      {.at_s = 40, .failure_class = "link_flap", .component = "host 9"}};
  database.add_failures(run, 0, failures);
  EXPECT_THAT(query(path_,
                    "SELECT replica, at_s, failure_class, component, planned, down_s, lost_work_s, "
                    "recovered_by FROM failures ORDER BY at_s"),
              ElementsAre(Row{"0", "12.5", "nic", "host 3", "0", "600.0", "20.0",
                              "spare host; remote store"},
                          Row{"0", "40.0", "link_flap", "host 9", "0", "NULL", "NULL", "NULL"}));
  EXPECT_THAT(query(path_, "SELECT term, seconds, percent FROM v_time_account"),
              ElementsAre(Row{"training", "900.0", "90.0"}, Row{"lost_work", "100.0", "10.0"}));
  EXPECT_THROW(database.add_failures(run + 1, 0, failures), SpecError) << "a run that is not there";
}

TEST_F(RunDatabaseTest, figures_that_are_no_numbers_are_null) {
  RunDatabase database(path_);
  const int64_t run = database.add_step(step(), record());
  const std::vector<Metric> metrics = {{"a", std::numeric_limits<double>::quiet_NaN(), "s"},
                                       {"b", std::numeric_limits<double>::infinity(), "s"},
                                       {"c", 0.1, "s"}};
  database.add_metrics(run, metrics);
  EXPECT_THAT(query(path_, "SELECT value FROM metrics WHERE length(name) = 1 ORDER BY name"),
              ElementsAre(Row{"NULL"}, Row{"NULL"}, Row{"0.1"}));
}

TEST_F(RunDatabaseTest, a_result_without_memory_or_peak_has_nulls_there) {
  StepResult r = step();
  r.memory.clear();
  r.peak = FlopRate();
  RunDatabase(path_).add_step(r, record());
  EXPECT_THAT(
      query(path_,
            "SELECT mfu, mfu_full_attention, peak_memory_bytes, peak_memory_stage FROM runs"),
      ElementsAre(Row{"NULL", "NULL", "NULL", "NULL"}));
}

TEST_F(RunDatabaseTest, text_is_bound_and_never_executed) {
  const std::string hostile = "'); DROP TABLE runs; --";
  RunRecord r = record();
  r.command = hostile;
  RunDatabase(path_).add_step(step(hostile), r);
  EXPECT_THAT(query(path_, "SELECT scenario, command FROM runs"),
              ElementsAre(Row{hostile, hostile}));
}

TEST_F(RunDatabaseTest, results_accumulate_over_openings) {
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(RunDatabase(path_).add_step(step(), record()), i);
}

TEST_F(RunDatabaseTest, two_writers_at_once_lose_nothing) {
  RunDatabase a(path_), b(path_);
  for (int i = 0; i < 10; ++i) {
    a.add_step(step("a"), record());
    b.add_step(step("b"), record());
  }
  EXPECT_THAT(query(path_, "SELECT scenario, count(*) FROM runs GROUP BY scenario"),
              ElementsAre(Row{"a", "10"}, Row{"b", "10"}));
}

TEST_F(RunDatabaseTest, a_sweep_finds_its_points_again_and_keeps_each_once) {
  RunRecord r = record();
  r.sweep_point = SweepPoint{"tiny: seed", "seed=1"};
  RunDatabase database(path_);
  EXPECT_EQ(database.run_of(*r.sweep_point), std::nullopt);
  const int64_t run = database.add_step(step(), r);
  EXPECT_EQ(database.run_of(*r.sweep_point), run);
  EXPECT_EQ(database.run_of({"tiny: seed", "seed=2"}), std::nullopt);
  EXPECT_EQ(database.run_of({"other", "seed=1"}), std::nullopt);
  EXPECT_THROW(database.add_step(step(), r), SpecError);
  r.sweep_point->point = "seed=2";
  EXPECT_EQ(database.add_step(step(), r), run + 1) << "the failed call left nothing behind";
  EXPECT_THAT(query(path_, "SELECT count(*) FROM metrics GROUP BY run_id"),
              ElementsAre(Row{"28"}, Row{"28"}));
}

TEST_F(RunDatabaseTest, the_header_tells_whose_file_it_is_before_any_checkpoint) {
  RunDatabase database(path_);
  database.add_step(step(), record());
  const std::string header = bytes_of(path_).substr(0, 100);
  EXPECT_EQ(header.substr(68, 4), "Herd");
  EXPECT_THAT(query(path_, "PRAGMA journal_mode"), ElementsAre(Row{"wal"}));
}

TEST_F(RunDatabaseTest, foreign_files_are_refused_and_left_alone) {
  const std::string text = folder_ / "notes.txt", foreign = folder_ / "foreign.db",
                    short_file = folder_ / "short.db";
  std::ofstream(text) << std::string(5'000, 'x');
  std::ofstream(short_file) << "SQLite format 3";
  fs::create_directories(folder_ / "folder");
  {
    sqlite3* database = nullptr;
    sqlite3_open(foreign.c_str(), &database);
    sqlite3_exec(database, "CREATE TABLE runs(x); INSERT INTO runs VALUES (1)", nullptr, nullptr,
                 nullptr);
    sqlite3_close(database);
  }
  expect_refused(text, "is not an SQLite database");
  expect_refused(short_file, "is not an SQLite database");
  expect_refused(foreign, "another program");
  try {
    RunDatabase database(folder_ / "folder");
    ADD_FAILURE();
  } catch (const SpecError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is a directory"));
  }
}

TEST_F(RunDatabaseTest, a_newer_schema_is_refused_and_left_alone) {
  RunDatabase(path_).add_step(step(), record());
  query(path_, "PRAGMA user_version = 99");
  query(path_, "PRAGMA wal_checkpoint(TRUNCATE)");
  expect_refused(path_, "schema version 99");
}

// A file of version 1: the table of failures without its last column, the view of steps alone.
TEST_F(RunDatabaseTest, an_older_file_gets_what_it_lacks) {
  RunDatabase(path_).add_step(step(), record());
  query(path_, "ALTER TABLE failures DROP COLUMN recovered_by");
  query(path_, "DROP VIEW v_time_account");
  query(path_, "CREATE VIEW v_time_account AS SELECT 1 AS term");
  query(path_, "PRAGMA user_version = 1");
  RunDatabase database(path_);
  const std::vector<FailureRow> failures = {
      {.at_s = 1, .failure_class = "nic", .component = "host 3", .recovered_by = "spare host"}};
  database.add_failures(1, 0, failures);
  EXPECT_THAT(query(path_, "SELECT recovered_by FROM failures"), ElementsAre(Row{"spare host"}));
  EXPECT_THAT(query(path_, "PRAGMA user_version"), ElementsAre(Row{"2"}));
  EXPECT_EQ(query(path_, "SELECT term FROM v_time_account").size(), kTimeTerms);
}

TEST_F(RunDatabaseTest, an_older_file_gets_the_tables_it_lacks_and_keeps_what_it_had) {
  RunDatabase(path_).add_step(step(), record());
  query(path_, "DROP TABLE passes; DROP TABLE rank_time; DROP TABLE comparisons");
  query(path_, "PRAGMA user_version = 1");
  EXPECT_EQ(read_report_tables(path_).tables.size(), 9u) << "reading needs no table";
  RunDatabase database(path_);
  database.add_passes(1, std::vector<SchedulePass>{{.stage = 3, .rank = RankId(5)}});
  EXPECT_THAT(query(path_, "SELECT stage, rank, micro_batch, memory_bytes FROM passes"),
              ElementsAre(Row{"3", "5", "NULL", "NULL"}));
  EXPECT_THAT(query(path_, "SELECT count(*) FROM runs"), ElementsAre(Row{"1"}));
}

TEST_F(RunDatabaseTest, terms_of_a_class_of_ranks_sum_to_the_step) {
  RunDatabase database(path_);
  const int64_t run = database.add_step(step(), record());
  RankClassTime one{.stage = 1, .first_rank = 8, .ranks = 64, .nanoseconds = {}};
  for (size_t t = 0; t < kTimeTerms; ++t) one.nanoseconds[t] = static_cast<int64_t>(t) * 1'000'000;
  database.add_rank_time(run, std::vector{one, one});
  EXPECT_THAT(query(path_,
                    "SELECT rank_class, stage, ranks, round(sum(seconds), 6), count(*) "
                    "FROM rank_time GROUP BY rank_class"),
              ElementsAre(Row{"0", "1", "64", "0.066", "12"}, Row{"1", "1", "64", "0.066", "12"}));
}

TEST_F(RunDatabaseTest, a_suite_that_is_validated_again_replaces_its_rows) {
  RunDatabase database(path_);
  const Comparison row{.name = "a", .quantity = "mfu", .unit = "%", .predicted = 40, .published = 41};
  Comparison other = row;
  other.name = "b";
  database.add_comparisons("steps", std::vector{row, other});
  database.add_comparisons("mine", std::vector{row});
  database.add_comparisons("steps", std::vector{other});
  EXPECT_THAT(query(path_, "SELECT suite, name, allowed FROM comparisons ORDER BY suite"),
              ElementsAre(Row{"mine", "a", "NULL"}, Row{"steps", "b", "NULL"}));
}

TEST_F(RunDatabaseTest, reading_for_a_report_changes_no_byte_and_needs_the_file) {
  RunDatabase(path_).add_step(step(), record());
  const std::string before = bytes_of(path_);
  const ReportTables tables = read_report_tables(path_);
  EXPECT_EQ(bytes_of(path_), before);
  ASSERT_FALSE(tables.tables.empty());
  EXPECT_EQ(tables.tables[0].name, "runs");
  EXPECT_EQ(tables.tables[0].rows.size(), 1u);
  EXPECT_EQ(std::get<std::string>(tables.tables[0].rows[0][2]), "tiny");
  EXPECT_THROW(read_report_tables(path_ + "x"), SpecError);
  EXPECT_FALSE(fs::exists(path_ + "x"));
}

TEST_F(RunDatabaseTest, links_are_counted_by_tier_and_tenth_of_use) {
  RunDatabase(path_).add_step(step(), record());  // of 2.5 s
  query(path_,
        "INSERT INTO links VALUES (1, 0, 'nic', 'a', 1, 100, 250, 1.0, ''), (1, 1, 'nic', 'b', 2, "
        "100, 30, 0.12, '')");
  for (const StoredTable& table : read_report_tables(path_).tables) {
    if (table.name != "links") continue;
    ASSERT_EQ(table.rows.size(), 2u);
    EXPECT_EQ(std::get<int64_t>(table.rows[0][2]), 1);
    EXPECT_EQ(std::get<int64_t>(table.rows[0][3]), 2);
    EXPECT_EQ(std::get<int64_t>(table.rows[1][2]), 9) << "all of it is in the last tenth";
    EXPECT_DOUBLE_EQ(std::get<double>(table.rows[1][5]), 1.0);
  }
}

TEST_F(RunDatabaseTest, damage_is_found_on_opening_and_left_alone) {
  {
    RunDatabase database(path_);
    for (int i = 0; i < 50; ++i) database.add_step(step(), record());
  }
  const std::string whole = bytes_of(path_);
  ASSERT_GT(whole.size(), 5u * 4'096);
  std::ofstream(path_, std::ios::binary | std::ios::trunc)
      << whole.substr(0, whole.size() / 2 / 4'096 * 4'096);
  expect_refused(path_, "");
  std::string scribbled = whole;
  std::fill_n(scribbled.begin() + 3 * 4'096, 4'096, '\x5a');
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << scribbled;
  expect_refused(path_, "damaged");
}

TEST_F(RunDatabaseTest, an_empty_file_becomes_a_database) {
  std::ofstream(path_).flush();
  EXPECT_EQ(RunDatabase(path_).add_step(step(), record()), 1);
}

TEST_F(RunDatabaseTest, places_that_take_no_file_are_an_error_with_the_path) {
  for (const std::string place : {"/nonexistent/runs.db", "/proc/runs.db", "/dev/full"}) {
    try {
      RunDatabase database(place);
      ADD_FAILURE() << place;
    } catch (const SpecError& error) {
      EXPECT_THAT(error.what(), HasSubstr(place));
    }
  }
}

// A limit on the size of files behaves as a disk that fills up.
TEST_F(RunDatabaseTest, a_full_disk_is_an_error_and_keeps_what_was_whole) {
  RunDatabase database(path_);
  database.add_step(step(), record());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{fs::file_size(path_ + "-wal") + 100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  std::string message;
  int64_t added = 1;
  try {
    for (; added < 10'000; ++added) database.add_step(step(), record());
  } catch (const SpecError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(message, AllOf(HasSubstr(path_), HasSubstr("full")));
  EXPECT_THAT(query(path_, "SELECT count(*) FROM runs"), ElementsAre(Row{std::to_string(added)}));
  EXPECT_EQ(database.add_step(step(), record()), added + 1) << "with room again, it goes on";
}

}  // namespace
}  // namespace herdsim

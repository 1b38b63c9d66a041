#include "tools/study/sweep.h"

#include <gmock/gmock.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "sim/base/error.h"
#include "tests/tools/study/small_scenario.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/sweep_outcome.h"

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

// Ranks as threads: a mailbox each.
class Mailboxes {
 public:
  explicit Mailboxes(int ranks) : boxes_(static_cast<size_t>(ranks)) {}

  class Peer : public SweepPeers {
   public:
    Peer(Mailboxes& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int ranks() const override { return static_cast<int>(all_.boxes_.size()); }
    void send(int to, std::string_view bytes) override {
      const std::lock_guard lock(all_.mutex_);
      all_.boxes_[static_cast<size_t>(to)].push_back({rank_, std::string(bytes)});
      ++all_.sent_;
    }
    std::optional<Message> poll() override {
      const std::lock_guard lock(all_.mutex_);
      auto& box = all_.boxes_[static_cast<size_t>(rank_)];
      if (box.empty()) return std::nullopt;
      Message message = std::move(box.front());
      box.pop_front();
      return message;
    }

   private:
    Mailboxes& all_;
    const int rank_;
  };
  int sent() const { return sent_; }

 private:
  std::mutex mutex_;
  std::vector<std::deque<SweepPeers::Message>> boxes_;
  int sent_ = 0;
};

TEST_F(Sweep, ranks_change_no_row) {
  const auto alone = rows_of(run_sweep(request("alone.db")));
  for (const int ranks : {2, 4}) {
    Mailboxes mail(ranks);
    std::vector<std::thread> others;
    for (int rank = 1; rank < ranks; ++rank) {
      others.emplace_back([&, rank] {
        Mailboxes::Peer peer(mail, rank);
        SweepRequest mine = request("nobody_opens_this.db");
        mine.peers = &peer;
        EXPECT_TRUE(run_sweep(mine).rows.empty());
      });
    }
    Mailboxes::Peer writer(mail, 0);
    SweepRequest first = request("ranks" + std::to_string(ranks) + ".db");
    first.peers = &writer;
    const SweepResult result = run_sweep(first);
    for (std::thread& other : others) other.join();
    EXPECT_EQ(rows_of(result), alone) << ranks;
    EXPECT_EQ(result.computed, 8);
    EXPECT_GE(mail.sent(), 2 * (ranks - 1));
  }
  EXPECT_FALSE(std::filesystem::exists(path("nobody_opens_this.db")));
}

TEST_F(Sweep, a_rank_that_fails_is_named_and_its_point_computed_again) {
  Mailboxes mail(2);
  std::atomic<bool> failed{false};
  std::thread other([&] {
    Mailboxes::Peer peer(mail, 1);
    peer.send(0, "");
    std::optional<SweepPeers::Message> message;
    while (!message) message = peer.poll();
    if (message->bytes.empty()) return;
    SweepOutcome outcome;
    outcome.record.sweep_point = SweepPoint{"", ""};
    outcome.failed_because = "rank 1 at its point: out of memory";
    peer.send(0, to_bytes(outcome));
    failed = true;
  });
  Mailboxes::Peer writer(mail, 0);
  SweepRequest first = request("failing.db");
  first.peers = &writer;
  const SweepResult result = run_sweep(first);
  other.join();
  const size_t missing = failed ? 1 : 0;
  EXPECT_EQ(result.rows.size(), 8 - missing);
  EXPECT_EQ(result.failures.size(), missing);
  const SweepResult again = run_sweep(request("failing.db"));
  EXPECT_EQ(again.computed, static_cast<int64_t>(missing));
  EXPECT_EQ(rows_of(again), rows_of(run_sweep(request("whole.db"))));
}

TEST_F(Sweep, a_first_rank_that_stops_dismisses_the_others) {
  Mailboxes mail(2);
  std::thread other([&] {
    Mailboxes::Peer peer(mail, 1);
    SweepRequest mine = request("x.db");
    mine.peers = &peer;
    run_sweep(mine);
  });
  Mailboxes::Peer writer(mail, 0);
  SweepRequest first = request("no_such_folder/x.db");
  first.peers = &writer;
  EXPECT_THROW(run_sweep(first), SpecError);
  other.join();
}

TEST_F(Sweep, outcomes_are_the_same_after_a_journey_as_bytes) {
  const Scenario scenario = load_scenario(kSmallScenario, small_sets());
  SweepOutcome outcome;
  outcome.point = 7;
  outcome.scenario = "a";
  outcome.record.effective_spec = scenario.effective_text;
  outcome.record.seed = 11;
  outcome.record.sweep_point = SweepPoint{"s", "p"};
  outcome.step = simulate_step(scenario, {}).result;
  outcome.metrics = {{"run.mfu", 0.1, ""}, {"run.horizon_s", 1e6, "s"}};
  const std::string bytes = to_bytes(outcome);
  const SweepOutcome there = outcome_from_bytes(bytes);
  EXPECT_EQ(to_bytes(there), bytes);
  EXPECT_EQ(there.step.fingerprint(), outcome.step.fingerprint());
  EXPECT_EQ(there.step.all_warnings(), outcome.step.all_warnings());
  EXPECT_EQ(there.record.effective_spec, scenario.effective_text);
  EXPECT_EQ(there.metrics.size(), 2u);
}

TEST_F(Sweep, an_adaptive_one_stops_replicating_where_the_interval_is_narrow) {
  const auto sweep = [&](const std::string& name, double half_width) {
    SweepRequest r = request(name);
    r.axes = {"reliability.rate_scale=1,100"};
    r.sets.push_back("reliability.base=llama3-54-days");
    r.horizon = {.days = 20, .tokens = 0, .replicas = 16};
    r.adaptive_half_width = half_width;
    return run_sweep(r);
  };
  const auto figure = [](const SweepRow& row, const std::string& name) {
    for (const Metric& m : row.stored.figures) {
      if (m.name == name) return m.value;
    }
    return -1.0;
  };
  const SweepResult wide = sweep("wide.db", 0.5), narrow = sweep("narrow.db", 1e-9);
  ASSERT_EQ(wide.rows.size(), 2u);
  for (const SweepRow& row : wide.rows) {
    EXPECT_EQ(figure(row, "run.replicas"), 4);
    EXPECT_LE(figure(row, "run.effective_training_time_half_width"), 0.5);
  }
  EXPECT_EQ(figure(narrow.rows[1], "run.replicas"), 16);
  SweepRequest steps = request("steps.db");
  steps.adaptive_half_width = 0.1;
  EXPECT_THROW(run_sweep(steps), SpecError);
}

}  // namespace
}  // namespace herdsim

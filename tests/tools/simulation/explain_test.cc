// What `explain` says of a step, held to the step: sums, bounds, and verdicts whose cause is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/explanation.h"
#include "tools/simulation/path_summary.h"
#include "tools/simulation/verdict.h"

namespace herdsim {
namespace {

using ::testing::HasSubstr;

StepSimulation explained(const Scenario& scenario) {
  return simulate_step(scenario, {.critical_path = true, .without = true});
}

double shortest(const StepSimulation& step, TimeTerm term) {
  for (const StepWithout& without : step.without) {
    if (without.term == term) return without.step.seconds();
  }
  return step.result.step_time.seconds();
}

TEST(PathSummary, terms_lines_and_segments_sum_to_the_step) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    if (!scenario.other_jobs.empty()) continue;  // answered of a job alone
    const StepSimulation step = explained(scenario);
    const PathSummary path = path_summary(step);
    Duration terms, lines, segments;
    for (const Duration term : path.terms) terms += term;
    for (const PathLine& line : path.lines) lines += line.time;
    for (const PathSegment& segment : path.segments) segments += segment.end - segment.begin;
    EXPECT_EQ(terms, step.result.step_time) << c.name;
    EXPECT_EQ(lines, step.result.step_time) << c.name;
    EXPECT_EQ(segments, step.result.step_time) << c.name;
    EXPECT_EQ(path.of(TimeTerm::kBubble), Duration::zero()) << c.name;
  }
}

TEST(Explanation, changes_nothing_of_the_step) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    EXPECT_EQ(explained(scenario).result.fingerprint(),
              simulate_step(scenario, {}).result.fingerprint())
        << c.name;
  }
}

// A chain of ops that follow each other takes as long whatever else is faster. So without one kind
// of transfer the step is no shorter than the path without them, less what contention and held SMs
// added to the rest of the path.
TEST(StepWithout, is_never_shorter_than_what_is_left_of_the_critical_path) {
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = explained(c.scenario());
    for (const StepWithout& without : step.without) {
      if (!without.simulated || without.term == TimeTerm::kStraggler) continue;
      Duration left;
      for (const CriticalOp& op : step.critical_path) {
        const Duration of_term = op.terms[static_cast<size_t>(without.term)];
        left += std::max(Duration::zero(), op.alone - of_term);
      }
      EXPECT_GE(without.step.seconds(), left.seconds() - 1e-6)
          << c.name << ": " << kTimeTermNames[static_cast<size_t>(without.term)];
    }
  }
}

TEST(StepWithout, folded_is_as_long_as_rank_by_rank) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    const StepSimulation folded = explained(scenario);
    const StepSimulation whole =
        simulate_step(scenario, {.fold = false, .critical_path = true, .without = true});
    ASSERT_EQ(folded.without.size(), whole.without.size()) << c.name;
    for (size_t i = 0; i < folded.without.size(); ++i) {
      EXPECT_EQ(folded.without[i].term, whole.without[i].term) << c.name;
      EXPECT_EQ(folded.without[i].step, whole.without[i].step) << c.name;
    }
  }
}

// Switches that hide or remove a loss give what `without` allows at most.
TEST(StepWithout, bounds_what_the_switches_of_a_scenario_give) {
  struct Switch {
    const char* off;
    const char* on;
    TimeTerm term;
  };
  const SmallPlan plan{.tp = 4,
                       .pp = 4,
                       .dp = 4,
                       .virtual_stages = 2,
                       .micro_batches = 8,
                       .schedule = "interleaved-1f1b"};
  for (const Switch& s :
       {Switch{"software.tp_backward_overlap=false", "software.tp_backward_overlap=true",
               TimeTerm::kExposedTp},
        Switch{"software.tp_overlap=NONE", "software.tp_overlap=CHUNKED", TimeTerm::kExposedTp},
        Switch{"software.dp_overlap=false", "software.dp_overlap=true", TimeTerm::kExposedDp},
        Switch{"software.p2p_async=false", "software.p2p_async=true", TimeTerm::kExposedPp},
        Switch{"cluster.degraded={gpu: 5 compute_factor: 0.8}", "seed=1", TimeTerm::kStraggler},
        Switch{"software.gpu_speed_sigma=0.02", "software.gpu_speed_sigma=0", TimeTerm::kStraggler},
        Switch{"software.host_milliseconds_per_step=40", "software.host_milliseconds_per_step=0",
               TimeTerm::kOther}}) {
    const Scenario off = load_scenario("llama3-405b-16384", small_job(plan, {s.off}));
    const Scenario on = load_scenario("llama3-405b-16384", small_job(plan, {s.on}));
    const StepSimulation before = explained(off);
    const double after = simulate_step(on, {}).result.step_time.seconds();
    EXPECT_GE(after, shortest(before, s.term) * (1 - 1e-9)) << s.on;
    EXPECT_LT(shortest(before, s.term), before.result.step_time.seconds()) << s.off;
  }
}

// More micro-batches and schedules with less bubble, for the same work, stay above the bound.
TEST(StepWithout, bounds_what_better_schedules_give) {
  const auto small = [](const std::string& schedule, int64_t virtual_stages) {
    std::vector<std::string> sets = small_job({.tp = 2,
                                               .pp = 4,
                                               .dp = 2,
                                               .virtual_stages = virtual_stages,
                                               .micro_batches = 4,
                                               .schedule = schedule});
    std::erase_if(sets, [](const std::string& set) { return set.starts_with("model.layers="); });
    sets.emplace_back("model.layers=8");
    return load_scenario("llama3-405b-16384", sets);
  };
  const StepSimulation plain = explained(small("1f1b", 1));
  const double bound = shortest(plain, TimeTerm::kBubble);
  EXPECT_LT(bound, 0.9 * plain.result.step_time.seconds());
  EXPECT_GE(simulate_step(small("interleaved-1f1b", 2), {}).result.step_time.seconds(), bound);
  EXPECT_GE(simulate_step(small("zb-h1", 1), {}).result.step_time.seconds(), bound);
}

struct Expected {
  std::string name, base;
  std::vector<std::string> sets;
  TimeTerm term;
  std::string says;
};

TEST(Verdict, names_the_cause_that_was_built_in) {
  const std::string base = "llama3-405b-16384";
  const std::vector<std::string> experts = {
      "model.experts=16", "model.experts_per_token=2", "model.expert_ffn=1024",
      "parallel.ep=16",   "model.vocab=8192",          "cluster.nic_gigabits_per_second=50"};
  const std::vector<Expected> cases = {
      {"tensor parallelism over slow NICs", base,
       small_job({.tp = 16, .micro_batches = 2}, {"cluster.nic_gigabits_per_second=50"}),
       TimeTerm::kExposedTp, "GB/s of the network"},
      {"pipeline of few micro-batches", base, small_job({.pp = 8, .micro_batches = 2}),
       TimeTerm::kBubble, "8 stages and 2 micro-batches"},
      {"experts over slow NICs", base, small_job({.tp = 1, .dp = 16, .micro_batches = 16}, experts),
       TimeTerm::kExposedEp, "EP"},
      {"shards over slow NICs", base,
       small_job({.dp = 16, .micro_batches = 1},
                 {"parallel.shard=ZERO3", "cluster.nic_gigabits_per_second=50"}),
       TimeTerm::kExposedDp, "DP"},
      {"one slow NIC", base,
       small_job({.tp = 2, .dp = 16, .micro_batches = 1},
                 {"cluster.degraded={gpu: 9 nic_factor: 0.05}"}),
       TimeTerm::kExposedDp, "with the NIC of rank 9 at 5 %"},
      {"one slow GPU", base,
       small_job({.tp = 2, .dp = 4, .micro_batches = 8},
                 {"cluster.degraded={gpu: 5 compute_factor: 0.6}"}),
       TimeTerm::kStraggler, "rank 5 computes at 60 %"},
      {"speeds apart", base,
       small_job({.tp = 8, .micro_batches = 8}, {"software.gpu_speed_sigma=0.3"}),
       TimeTerm::kStraggler, "slowest of 8 GPUs"},
      {"a slow loader", base,
       small_job({.tp = 8, .micro_batches = 8}, {"training.loader={tokens_per_second: 5000}"}),
       TimeTerm::kLoader, "5,000 of the"},
      {"a slow host", base,
       small_job({.tp = 8, .micro_batches = 1}, {"software.host_milliseconds_per_step=2000"}),
       TimeTerm::kOther, "host"},
  };
  for (const Expected& e : cases) {
    const Scenario scenario = load_scenario(e.base, e.sets);
    const StepSimulation step = explained(scenario);
    const Verdict found = verdict(scenario, step);
    EXPECT_EQ(found.term, e.term) << e.name << ": " << found.sentence;
    EXPECT_THAT(found.sentence, HasSubstr(e.says)) << e.name;
    EXPECT_GE(found.gain, kLeastGain) << e.name;
    EXPECT_LT(found.gain, 1) << e.name;
    EXPECT_EQ(std::count(found.sentence.begin(), found.sentence.end(), '\n'), 0) << e.name;
  }
}

TEST(Verdict, of_a_job_among_others_says_what_sharing_costs) {
  int seen = 0;
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    if (scenario.other_jobs.empty()) continue;
    ++seen;
    const StepSimulation step = explained(scenario);
    EXPECT_TRUE(step.critical_path.empty() && step.without.empty()) << c.name;
    const Verdict found = verdict(scenario, step);
    EXPECT_THAT(found.sentence, HasSubstr("sharing takes")) << c.name;
    EXPECT_NEAR(found.gain,
                1 - step.result.jobs.front().alone.seconds() / step.result.step_time.seconds(),
                1e-12)
        << c.name;
  }
  EXPECT_GT(seen, 0);
}

TEST(Verdict, of_one_gpu_without_a_loss_is_that_of_its_products) {
  const Scenario scenario = load_scenario(
      "llama3-405b-16384",
      small_job({}, {"software.gpu_speed_sigma=0", "software.host_milliseconds_per_step=0",
                     "software.step_jitter_milliseconds=0", "software.forward.hidden_bytes=0",
                     "software.forward.ffn_bytes=0", "software.backward.hidden_bytes=0",
                     "software.backward.ffn_bytes=0", "software.logit_bytes=0",
                     "software.gradient_accumulation_bytes=0", "software.optimizer_bytes=0"}));
  const Verdict found = verdict(scenario, explained(scenario));
  EXPECT_EQ(found.term, TimeTerm::kCompute) << found.sentence;
  EXPECT_THAT(found.sentence, HasSubstr("of 989 TFLOP/s"));
}

TEST(Explanation, fits_eighty_columns_and_its_json_sums_to_the_step) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    if (!scenario.other_jobs.empty()) continue;
    const StepSimulation step = explained(scenario);
    std::istringstream lines(explanation_table(scenario, step));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), 80U) << c.name << ": " << line;
    const auto json = nlohmann::json::parse(explanation_json(scenario, step));
    double sum = 0;
    for (const auto& line : json["critical_path"]["by_work"]) sum += line["total_s"].get<double>();
    EXPECT_NEAR(sum, step.result.step_time.seconds(), 1e-9) << c.name;
    EXPECT_NE(json["verdict"]["sentence"], "") << c.name;
  }
}

}  // namespace
}  // namespace herdsim
